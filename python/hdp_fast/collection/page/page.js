// The respondent's page: it shows a signed question, randomizes the answer on this device, and sends the line that comes of it.
//
// What is decided about privacy is decided by device.wasm: whether the question is genuine, which query is asked, and which line
// answers it. This file shows it, and keeps the line before it is sent, so that nobody's answer is ever drawn a second time.
// Every text of others becomes a text node: no HTML is made of it. It is one file, which a survey tool includes as it is.

const HERE = new URL(import.meta.url);
const BASE = "hdp_fast"; // of what is kept
const RADIOS = 6; // More choices than these become a list.
const ENCODE = new TextEncoder();
const DECODE = new TextDecoder("utf-8", { fatal: true });

/** What ends the page's work for now: the key of a text and what is filled into it. */
export class Stop extends Error {
  constructor(key, values = {}, again = false) {
    super(key);
    Object.assign(this, { key, values, again });
  }
}

// Texts ----------------------------------------------------------------------------------------------------------------

let WORDS = { lang: "en", dir: "ltr", texts: {} };

/** A text of others, without what could turn the order of letters around it. */
const told = (text) => String(text).replace(/[\u202a-\u202e\u2066-\u2069\u200e\u200f]/g, "");

/** A text of the page; strings that are filled in are other people's, and keep to themselves. */
export function say(key, values = {}) {
  const text = WORDS.texts[key] ?? key;
  return text.replace(/\{(\w+)\}/g, (_, name) => {
    const value = values[name];
    return typeof value === "number" ? round(value) : `\u2068${told(value)}\u2069`;
  });
}

/** A number with two digits, or all digits before its point. */
const round = (value) => {
  const digits = Math.abs(value) < 100 ? { maximumSignificantDigits: 2 } : { maximumFractionDigits: 0 };
  return new Intl.NumberFormat(WORDS.lang, digits).format(value);
};

/** A bound with two digits, which is never below the number. */
export const above = (value) => {
  const unit = 10 ** (Math.floor(Math.log10(value)) - 1);
  return Math.ceil(value / unit) * unit;
};

/** A bound with two digits, which is never above the number. */
export const below = (value) => {
  const unit = 10 ** (Math.floor(Math.log10(value)) - 1);
  return Math.floor(value / unit) * unit;
};

/** A number as a person would type it. */
const plain = (value) => new Intl.NumberFormat(WORDS.lang, { maximumSignificantDigits: 6, useGrouping: false }).format(value);

// Invitations ----------------------------------------------------------------------------------------------------------

/** The invitation in a link's fragment, or null where it is none. */
export function readInvitation(fragment) {
  const fields = new URLSearchParams(fragment.replace(/^#/, ""));
  const names = ["study", "number", "token", "key", "epsilon"];
  if (names.some((name) => fields.getAll(name).length > 1)) return null;
  const study = fields.get("study") ?? "";
  const number = fields.has("number") ? Number(fields.get("number")) : null;
  const token = fields.get("token");
  const key = fields.get("key") ?? "";
  const epsilon = Number(fields.get("epsilon") ?? NaN);
  const isWhole = number === null || (Number.isSafeInteger(number) && number >= 1);
  const isSound = study.length >= 1 && study.length <= 100 && isWhole && (token === null || /^[0-9a-f]{32}$/.test(token));
  if (!isSound || !/^[0-9a-f]{64}$/.test(key) || !(epsilon > 0 && epsilon < Infinity)) return null;
  return { study, number, token, key, epsilon };
}

const LAST = "hdp_fast.invitation";

/** The invitation of this tab, which a reload finds although it no longer stands in the address bar. */
function takeInvitation() {
  const fragment = location.hash;
  if (fragment.length > 1) {
    history.replaceState(null, "", location.pathname + location.search);
    const invitation = readInvitation(fragment);
    if (invitation !== null) remember(fragment);
    return invitation;
  }
  try {
    return readInvitation(sessionStorage.getItem(LAST) ?? "");
  } catch {
    return null;
  }
}

function remember(fragment) {
  try {
    sessionStorage.setItem(LAST, fragment);
  } catch {
    // A reload will need the link again, and what was drawn is kept elsewhere.
  }
}

// What is kept ---------------------------------------------------------------------------------------------------------

const settled = (request) =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

/** The answers of this browser: one for each invitation, the first that was drawn, whichever tab has drawn it. */
export class Store {
  static async open() {
    try {
      const request = indexedDB.open(BASE, 1);
      request.onupgradeneeded = () => {
        request.result.createObjectStore("study");
        request.result.createObjectStore("answer");
      };
      return new Store(await settled(request));
    } catch {
      throw new Stop("no_storage");
    }
  }

  constructor(base) {
    this.base = base;
    base.onversionchange = () => base.close();
  }

  /** Runs some requests in one transaction, which no other tab can come between, and waits until it is on the disk. */
  async change(work) {
    const change = this.base.transaction(["study", "answer"], "readwrite", { durability: "strict" });
    const ended = new Promise((resolve, reject) => {
      change.oncomplete = resolve;
      change.onabort = change.onerror = () => reject(change.error ?? new Error("aborted"));
    });
    try {
      const result = await work(change.objectStore("study"), change.objectStore("answer"));
      await ended;
      return result;
    } catch (error) {
      ended.catch(() => {});
      if (change.error === null && error instanceof Stop) change.abort();
      if (error instanceof Stop) throw error;
      throw new Stop("no_storage");
    }
  }

  place(invitation) {
    return JSON.stringify([invitation.study, invitation.number]);
  }

  /** Refuses another key or epsilon than this browser has seen of the study, and remembers those that are new. */
  agree(invitation) {
    const { study, key, epsilon } = invitation;
    return this.change(async (studies) => {
      const known = await settled(studies.get(study));
      if (known === undefined) await settled(studies.put({ key, epsilon }, study));
      else if (known.key !== key) throw new Stop("another_key", { study });
      else if (known.epsilon !== epsilon) throw new Stop("another_epsilon", { study, before: plain(known.epsilon), now: plain(epsilon) });
    });
  }

  /** The answer to an invitation, or undefined. */
  find(invitation) {
    return this.change((_, answers) => settled(answers.get(this.place(invitation))));
  }

  /** Whether another invitation to the same study was answered in this browser. */
  async isShared(invitation) {
    const places = await this.change((_, answers) => settled(answers.getAllKeys()));
    return places.some((place) => JSON.parse(place)[0] === invitation.study && place !== this.place(invitation));
  }

  /** Keeps an answer if there is none, and returns the one that was first. */
  keep(invitation, answer) {
    return this.change(async (_, answers) => {
      const place = this.place(invitation);
      const first = await settled(answers.get(place));
      if (first !== undefined) return first;
      await settled(answers.put(answer, place));
      return answer;
    });
  }

  /** Notes that the line has arrived. */
  finish(invitation) {
    return this.change(async (_, answers) => {
      const answer = await settled(answers.get(this.place(invitation)));
      await settled(answers.put({ ...answer, sent: true }, this.place(invitation)));
    });
  }
}

// The device -----------------------------------------------------------------------------------------------------------

const toHex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** device.wasm, which knows nothing of this page and asks it for random bytes alone. */
export class Device {
  static async load(bytes) {
    const exported = {};
    const random = (start, length) => {
      const place = new Uint8Array(exported.memory.buffer, start >>> 0, length >>> 0);
      for (let from = 0; from < place.length; from += 65536) crypto.getRandomValues(place.subarray(from, from + 65536));
    };
    const { instance, module } = await WebAssembly.instantiate(bytes, { env: { random } });
    const imports = WebAssembly.Module.imports(module).map((part) => `${part.module}.${part.name}`);
    if (imports.some((name) => name !== "env.random")) throw new Error("the device asks for more than random bytes");
    Object.assign(exported, instance.exports);
    const digest = await crypto.subtle.digest("SHA-256", bytes);
    return new Device(exported, toHex(new Uint8Array(digest)));
  }

  constructor(exported, hash) {
    this.exported = exported;
    this.hash = hash;
  }

  call(name, input) {
    const { memory, alloc, release } = this.exported;
    const text = ENCODE.encode(JSON.stringify(input));
    const asked = alloc(text.length) >>> 0;
    new Uint8Array(memory.buffer, asked, text.length).set(text);
    const place = this.exported[name](asked, text.length) >>> 0;
    release(asked, text.length);
    const length = new DataView(memory.buffer).getUint32(place, true);
    const output = DECODE.decode(new Uint8Array(memory.buffer, place + 4, length).slice());
    release(place, length + 4);
    return JSON.parse(output);
  }
}

// What is asked, in words ----------------------------------------------------------------------------------------------

const bounds = (low, high) => [low ?? -Infinity, high ?? Infinity];

/** Whether a feature of 0 or 1 holds, in words. */
function holds(rule, form, truth) {
  const asked = form.inputs[rule.input];
  if ("at_least" in rule) return say(truth ? "is_at_least" : "is_below", { input: asked.text, cut: plain(rule.at_least) });
  const texts = asked.choices.filter((choice) => rule.values.includes(choice.value)).map((choice) => choice.text);
  return say(truth ? "is_one_of" : "is_none_of", { input: asked.text, choices: texts.join(" / ") });
}

/** Whether a feature lies in an interval, in words. */
function lies(rule, form, low, high) {
  if (!("scale" in rule)) {
    const takes = [0, 1].map((value) => low <= value && value < high);
    return takes[0] === takes[1] ? say("is_some_fact") : holds(rule, form, takes[1]);
  }
  const input = form.inputs[rule.input].text;
  const [from, to] = [low, high].map((end) => plain((end - rule.offset) / rule.scale));
  if (high === Infinity) return say("is_at_least", { input, cut: from });
  return low === -Infinity ? say("is_below", { input, cut: to }) : say("is_between", { input, from, to });
}

/** One term of a query in words. */
function termInWords(term, form) {
  const label = form?.label ? form.inputs[form.label.input].text : "";
  const rule = form?.features?.[term.column];
  if (term.kind === "label" && form?.label && !("scale" in form.label)) return holds(form.label, form, true);
  if (term.kind === "between" && rule) return lies(rule, form, ...bounds(term.low, term.high));
  if (term.kind === "value" && rule && !("scale" in rule)) return holds(rule, form, true);
  if (term.kind === "value" && rule) {
    const [from, to] = [term.low, term.high].map((end) => plain((end - rule.offset) / rule.scale));
    return say("is_place", { input: form.inputs[rule.input].text, from, to });
  }
  const known = { wrong: label ? "is_wrong" : "is_wrong_bare", worse: "is_worse", score_above: "is_score", loss_saved: "is_saved" }[term.kind];
  return known === undefined ? say("is_some_fact") : say(known, { label });
}

/** What a query asks, as one sentence for each of its terms. */
export function queryInWords(query, form) {
  if (query === null || query === undefined) return [];
  if (query.kind !== "query") return [termInWords({ kind: "wrong" }, form)]; // A hypothesis: is it wrong about the record?
  return query.terms.map((term) => termInWords(term, form));
}

// The page -------------------------------------------------------------------------------------------------------------

/** An element with attributes and children, whose strings become text. */
function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) if (value !== null) element.setAttribute(key, value);
  element.append(...children.filter((child) => child !== null));
  return element;
}

/** A text of others, in an element that keeps its direction to itself. */
const quote = (name, text) => make(name, { class: "told", dir: "auto" }, told(text).replace(/\n{3,}/g, "\n\n"));

export class Page {
  constructor(root, field = null) {
    Object.assign(this, { root, field, isBusy: false, wants: false });
    // Within a survey tool's form nothing that is typed here belongs to that form.
    this.place = field === null ? root : (root.shadowRoot ?? root.attachShadow({ mode: "open" }));
  }

  /** From the invitation to the question, or to what stands in its way. */
  async start() {
    try {
      await this.build();
      this.invitation = this.field === null ? takeInvitation() : readInvitation(this.root.dataset.invitation ?? "");
      if (this.invitation === null || (this.field === null && this.invitation.token === null)) throw new Stop("no_invitation");
      if (this.field !== null) this.target();
      if (!isSecureContext) throw new Stop("not_secure");
      this.store = await Store.open();
      const kept = await this.store.find(this.invitation);
      if (kept === undefined) await this.ask();
      else await this.resume(kept);
    } catch (error) {
      this.stop(error);
    }
  }

  async build() {
    WORDS = await this.load("texts.json", (response) => response.json());
    const level = this.field === null ? 1 : 2;
    this.heading = (below) => `h${level + below}`;
    this.status = make("p", { class: "status", role: "status", "aria-live": "polite", tabindex: "-1" }, say("loading"));
    this.title = make(this.heading(0), {}, say("title"));
    this.body = make("div");
    const page = make("div", { class: "hdp", lang: WORDS.lang, dir: WORDS.dir }, this.title, this.status, this.body);
    if (this.field === null) {
      document.documentElement.lang = WORDS.lang;
      document.documentElement.dir = WORDS.dir;
      document.title = say("title");
      page.removeAttribute("class");
      this.place.replaceChildren(page);
    } else {
      const style = make("link", { rel: "stylesheet", href: new URL("style.css", HERE).href });
      this.place.replaceChildren(style, page);
    }
  }

  async load(name, read) {
    const response = await this.fetch(new URL(name, HERE), { credentials: "omit" });
    if (!response.ok) throw new Stop("unreachable", {}, true);
    return read(response);
  }

  tell(key, values = {}, mood = "") {
    this.status.className = `status ${mood}`;
    this.status.textContent = say(key, values);
  }

  stop(error) {
    const known = error instanceof Stop ? error : new Stop("broken");
    this.isBusy = false;
    if (this.status === undefined) return; // The texts are missing; what stands in the file says so.
    this.tell(known.key, known.values, "wrong");
    this.body.replaceChildren(known.again ? this.button("again", () => location.reload()) : "");
  }

  button(key, act, type = "button") {
    const button = make("button", { type }, say(key));
    if (act !== null) button.addEventListener("click", act);
    return make("p", {}, button);
  }

  /** The hidden field of the surrounding form. */
  target() {
    const around = this.root.closest("form") ?? document;
    const field = around.querySelector(`[name="${CSS.escape(this.field)}"]`);
    if (field === null) throw new Stop("no_field", { field: this.field });
    return field;
  }

  // The question -------------------------------------------------------------------------------------------------------

  async ask() {
    const [signed, bytes] = await Promise.all([this.fetchQuestion(), this.load("device.wasm", (response) => response.arrayBuffer())]);
    this.device = await Device.load(bytes);
    const { key, study, epsilon, number } = this.invitation;
    this.input = { signed, key, study, epsilon, number };
    this.asked = this.device.call("describe", this.input);
    if (this.asked.error) throw new Stop("unverified", { name: this.asked.error.name, rule: this.asked.error.rule });
    await this.store.agree(this.invitation);
    this.plainText = JSON.parse(JSON.parse(signed).question);
    this.isShared = await this.store.isShared(this.invitation);
    this.showQuestion();
  }

  async fetchQuestion() {
    const way = { credentials: "omit", cache: "no-store", redirect: "error" };
    if (this.field !== null) return (await this.fetch(new URL(this.root.dataset.question, document.baseURI), way)).text();
    const headers = { Authorization: `Bearer ${this.invitation.token}` };
    const response = await this.fetch(new URL("question", HERE), { ...way, headers });
    if (response.ok) return response.text();
    const why = await reason(response);
    if (response.status === 404) throw new Stop("not_yet", {}, true);
    if (response.status === 410) throw new Stop(why === "answered" ? "answered_elsewhere" : "closed");
    if (response.status === 401) throw new Stop("unknown");
    throw new Stop(response.status === 429 ? "too_many" : "unreachable", {}, true);
  }

  async fetch(address, way) {
    try {
      return await fetch(address, way);
    } catch {
      throw new Stop("unreachable", {}, true);
    }
  }

  showQuestion() {
    const { asked } = this;
    this.fields = this.fieldsOf(asked).map((input, place) => this.makeField(input, place));
    this.form = make("form", { novalidate: "", autocomplete: "off" });
    this.form.append(...this.fields.map((field) => field.element));
    if (this.isShared) this.form.append(this.makeConfirmation());
    this.form.append(make("p", { class: "soft" }, say("before_draw")), this.button("draw", null, "submit"));
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.draw().catch((error) => this.stop(error));
    });
    const short = this.fields.length ? "answer_here" : "nothing_to_type";
    this.body.replaceChildren(
      this.about(),
      this.wording(),
      this.protection(),
      make("section", {}, make(this.heading(1), {}, say("your_answer")), make("p", {}, say(short)), this.form),
      this.details(),
    );
    this.tell("ready");
  }

  /** Who asks. */
  about() {
    const rows = [["who_asks", this.asked.asker], ["study", this.asked.study ?? this.invitation.study]];
    const list = rows.filter(([, text]) => text).flatMap(([key, text]) => [make("dt", {}, say(key)), quote("dd", text)]);
    return make("section", {}, make(this.heading(1), {}, say("from_whom")), make("dl", {}, ...list), make("p", { class: "soft" }, say("verified")));
  }

  /** The asker's words, and the page's own about the query. */
  wording() {
    const { asked } = this;
    const parts = [make(this.heading(1), {}, say("question"))];
    if (asked.text) parts.push(make("p", {}, say("their_words")), quote("blockquote", asked.text));
    const facts = queryInWords(asked.query, asked.form);
    if (facts.length) {
      parts.push(make("p", {}, say(facts.length > 1 ? "works_out_all" : "works_out")));
      parts.push(make("ul", {}, ...facts.map((fact) => make("li", {}, fact))));
    }
    return make("section", {}, ...parts);
  }

  /** Epsilon in words. */
  protection() {
    const { epsilon, keep } = this.asked;
    const parts = [say("protects_choice", { keep })];
    if (this.isBit()) parts[0] = say("protects_bit", { flip: 1 - keep, times: 100 * (1 - keep) });
    if (this.isBetween()) parts.push(say("protects_round"));
    parts.push(say("nobody_knows"), say("epsilon_is", { epsilon: plain(epsilon), factor: above(Math.exp(epsilon)) }));
    return make("section", {}, make(this.heading(1), {}, say("protection")), ...parts.map((part) => make("p", {}, part)));
  }

  /** Whether what leaves is one bit that is kept or turned round, and not one of several categories. */
  isBit() {
    return this.plainText.randomizer.randomizer === "BinaryResponse";
  }

  /** Whether the answer may lie between the two. */
  isBetween() {
    const { query, kind, form } = this.asked;
    if (!query) return kind === "mean" && this.isBit();
    const isScaled = (term) => "scale" in (form?.features?.[term.column] ?? { scale: 1 });
    return (query.terms ?? []).some((term) => ["worse", "loss_saved", "weighted"].includes(term.kind) || (term.kind === "value" && isScaled(term)));
  }

  details() {
    const { asked, device } = this;
    const rows = [
      ["question_id", asked.id], ["digest", asked.digest], ["key", this.invitation.key], ["program", device.hash],
      ["number", this.invitation.number ?? "-"],
    ];
    const list = rows.flatMap(([key, text]) => [make("dt", {}, say(key)), make("dd", {}, make("code", { dir: "ltr" }, told(text)))]);
    const query = asked.query ? make("pre", { dir: "ltr" }, make("code", {}, told(JSON.stringify(asked.query)).slice(0, 4000))) : null;
    return make("details", {}, make("summary", {}, say("details")), make("p", {}, say("how_to_check")), make("dl", {}, ...list), query);
  }

  // The inputs ---------------------------------------------------------------------------------------------------------

  /** The inputs that the question needs: those of its form, or one for its value. */
  fieldsOf(asked) {
    if (asked.form && (asked.query || asked.inputs?.length)) return (asked.inputs ?? []).map((place) => asked.form.inputs[place]);
    const { categories, randomizer } = this.plainText;
    const text = say("value");
    if (categories) return [{ name: "", text, kind: "choice", choices: categories.map((value) => ({ value, text: value })) }];
    if (asked.kind === "frequency") return [{ name: "", text, kind: "number", low: 0, high: randomizer.k - 1, whole: true }];
    if (asked.kind === "mean" && !asked.query) return [{ name: "", text, kind: "number", low: randomizer.bounds?.[0] ?? 0, high: randomizer.bounds?.[1] ?? 1 }];
    throw new Stop("cannot_ask");
  }

  makeField(input, place) {
    const id = `hdp-${place}`;
    const error = make("p", { class: "error", id: `${id}-error`, hidden: "" });
    const field = input.kind === "number" ? numberField(input, id) : choiceField(input, id);
    field.element.insertBefore(error, field.beside);
    const describe = (isWrong) => [field.hint ? `${id}-hint` : "", isWrong ? `${id}-error` : ""].join(" ").trim();
    const show = (key, values) => {
      error.hidden = key === null;
      error.textContent = key === null ? "" : say(key, values);
      field.element.querySelectorAll("input, select").forEach((control) => {
        if (key === null) control.removeAttribute("aria-invalid");
        else control.setAttribute("aria-invalid", "true");
        if (describe(key !== null)) control.setAttribute("aria-describedby", describe(key !== null));
        else control.removeAttribute("aria-describedby");
      });
    };
    show(null);
    return { ...field, input, show, focus: () => field.element.querySelector("input, select").focus() };
  }

  /** Somebody else has answered in this browser: the page cannot see whether it is the same person. */
  makeConfirmation() {
    const box = make("input", { type: "checkbox", id: "hdp-other" });
    this.confirmation = box;
    const label = make("label", { for: "hdp-other" }, say("i_am_another"));
    return make("div", { class: "field" }, make("p", {}, say("shared")), make("div", { class: "choice" }, box, label));
  }

  /** What was typed by the names of inputs, or null where something is missing. */
  read() {
    const wrong = this.fields.filter((field) => {
      const problem = field.problem();
      field.show(problem);
      return problem !== null;
    });
    if (this.confirmation && !this.confirmation.checked) {
      this.tell("confirm_first", {}, "wrong");
      if (!wrong.length) this.confirmation.focus();
    }
    if (wrong.length) {
      this.tell("fields_wrong", { count: wrong.length }, "wrong");
      wrong[0].focus();
    }
    if (wrong.length || (this.confirmation && !this.confirmation.checked)) return null;
    const values = this.fields.map((field) => [field.input.name, field.value()]);
    if (this.asked.query) return { answers: Object.fromEntries(values) };
    return { value: values[0][1] };
  }

  // The answer ---------------------------------------------------------------------------------------------------------

  async draw() {
    const typed = this.isBusy ? null : this.read();
    if (typed === null) return;
    this.isBusy = true;
    const output = this.device.call("answer", { ...this.input, ...typed });
    if (output.error) {
      this.refuse(output.error);
      return;
    }
    const { asked } = this;
    const { id, digest, epsilon, keep, queries } = asked;
    const answer = { line: output.line, id, digest, epsilon, keep, queries, isBit: this.isBit(), key: this.invitation.key, sent: false };
    // Another tab may have been first: then this line is forgotten, and only that one leaves.
    const kept = await this.store.keep(this.invitation, answer);
    this.forget();
    this.isBusy = false;
    this.showLine(kept, kept.line === output.line ? output : null);
  }

  /** Shows the device's own refusal beside the field that it names. */
  refuse({ name, rule }) {
    this.isBusy = false;
    const field = this.fields.find((one) => one.input.name === name) ?? (this.fields.length === 1 ? this.fields[0] : undefined);
    this.tell("device_refuses", { name, rule }, "wrong");
    if (field === undefined) return;
    field.show("device_refuses", { name: field.input.text, rule });
    field.focus();
  }

  /** What was typed is no longer needed. */
  forget() {
    this.form?.reset();
    this.form?.remove();
    this.form = this.fields = this.input = this.confirmation = this.device = null;
  }

  /** An answer that was drawn before, by this tab or another: the same line, whatever the question is now. */
  async resume(kept) {
    const { key, epsilon, study } = this.invitation;
    if (kept.key !== key) throw new Stop("another_key", { study });
    if (kept.epsilon !== epsilon) throw new Stop("another_epsilon", { study, before: plain(kept.epsilon), now: plain(epsilon) });
    this.showLine(kept, null);
    if (this.field !== null && kept.sent) this.fill(kept);
  }

  /** The very line, and what it tells. */
  showLine(kept, drawn) {
    const { sent, line } = kept;
    const title = make(this.heading(1), { tabindex: "-1" }, say(sent ? "what_left" : "what_leaves"));
    const parts = [title, make("p", {}, say("the_line")), make("code", { class: "leaves", dir: "ltr", translate: "no" }, line)];
    if (this.field === null) parts.push(make("p", {}, say("with_token")));
    parts.push(...this.conclusions(kept));
    if (drawn !== null) parts.push(this.truth(kept, drawn));
    parts.push(make("p", { class: "soft" }, say("only_once")));
    this.action = make("div");
    this.body.replaceChildren(make("section", {}, ...parts, this.action));
    if (sent) return this.done();
    this.offer(kept, this.field === null ? "send" : "fill");
    this.tell(drawn === null ? "drawn_before" : "drawn");
    if (drawn !== null) title.focus();
    return undefined;
  }

  /** What a stranger can conclude from the line. */
  conclusions({ line, epsilon, isBit, keep, queries }) {
    const factor = Math.exp(epsilon);
    const texts = [];
    if (isBit) texts.push(say(JSON.parse(line).report % 2 ? "says_yes" : "says_no", { keep, flip: 1 - keep }));
    if (queries > 1) texts.push(say("which_query", { queries }));
    const [after, before] = [above((100 * factor) / (1 + factor)), below(100 / (1 + factor))];
    texts.push(say("stranger", { factor: above(factor), after, before }));
    return texts.map((text) => make("p", {}, text));
  }

  /** The true answer beside the line, for the eyes of this person; it is kept nowhere. */
  truth({ isBit, line }, { truth }) {
    const bit = JSON.parse(line).report % 2;
    const isPlain = isBit && (truth === 0 || truth === 1);
    const text = isPlain ? say(truth === bit ? "truth_same" : "truth_other") : say("truth_value", { truth: plain(truth) });
    return make("details", {}, make("summary", {}, say("truth")), make("p", {}, text));
  }

  offer(kept, key) {
    this.action.replaceChildren(this.button(key, () => this.send(kept).catch((error) => this.stop(error))));
  }

  done() {
    this.wants = false;
    this.action.replaceChildren();
    this.tell(this.field === null ? "sent" : "filled", {}, "good");
    this.status.focus();
  }

  async send(kept) {
    if (this.isBusy) return;
    if (this.field !== null) {
      this.fill(kept);
      await this.finish(kept);
      return;
    }
    this.isBusy = this.wants = true;
    this.tell("sending");
    try {
      await this.post(kept);
    } finally {
      this.isBusy = false;
    }
  }

  async post(kept) {
    const headers = { Authorization: `Bearer ${this.invitation.token}`, "Content-Type": "application/json" };
    const way = { method: "POST", body: kept.line, headers, credentials: "omit", cache: "no-store", redirect: "error" };
    let response;
    try {
      response = await fetch(new URL("answer", HERE), way);
    } catch {
      return this.keepTrying(kept, "offline");
    }
    if (response.ok && (await response.json().catch(() => ({}))).accepted === true) return this.finish(kept);
    const why = await reason(response);
    const ends = { 401: "unknown", 409: "other_line", 410: why === "answered" ? "other_line" : "closed_before_sent", 413: "not_taken", 422: "not_taken" };
    if (!(response.status in ends)) return this.keepTrying(kept, response.status === 429 ? "too_many_kept" : "offline");
    this.wants = false;
    this.action.replaceChildren();
    return this.tell(ends[response.status], {}, "wrong");
  }

  /** The line is kept: the same one is sent again by a click, when the network is back, or when the link is opened again. */
  keepTrying(kept, key) {
    this.tell(key, {}, "wrong");
    this.offer(kept, "send_again");
    this.retry = () => this.wants && this.send(kept).catch((error) => this.stop(error));
  }

  async finish(kept) {
    // Where this cannot be noted, the line would only be sent again.
    await this.store.finish(this.invitation).catch(() => {});
    this.showLine({ ...kept, sent: true }, null);
  }

  fill(kept) {
    const field = this.target();
    field.value = kept.line;
    for (const name of ["input", "change"]) field.dispatchEvent(new Event(name, { bubbles: true }));
  }
}

async function reason(response) {
  try {
    return (await response.json()).error;
  } catch {
    return "";
  }
}

/** The number that a text is, as a text with a point; null where it is none, or could be read in two ways. */
export function readNumber(text) {
  const trimmed = text.trim().replace(/\u2212/g, "-");
  if (/^[-+]?\d{1,3},\d{3}$/.test(trimmed)) return null;
  return /^[-+]?(\d{1,15}([.,]\d{0,15})?|[.,]\d{1,15})$/.test(trimmed) ? trimmed.replace(",", ".").replace(/^\+/, "") : null;
}

function numberField(input, id) {
  const control = make("input", { type: "text", inputmode: input.low < 0 ? "text" : "decimal", id, autocomplete: "off", spellcheck: "false", maxlength: "40" });
  const hint = make("p", { class: "soft", id: `${id}-hint` }, say("from_to", { low: plain(input.low), high: plain(input.high) }));
  const label = make("label", { for: id, class: "told", dir: "auto" }, told(input.text));
  const element = make("div", { class: "field" }, label, hint, control);
  const problem = () => {
    if (control.value.trim() === "") return "field_empty";
    const number = readNumber(control.value);
    return number === null || (input.whole && !/^-?\d+$/.test(number)) ? "field_no_number" : null;
  };
  return { element, beside: control, hint, problem, value: () => readNumber(control.value) };
}

function choiceField(input, id) {
  if (input.choices.length > RADIOS) {
    const options = input.choices.map((choice, place) => make("option", { value: String(place), class: "told", dir: "auto" }, told(choice.text)));
    const control = make("select", { id, autocomplete: "off" }, make("option", { value: "" }, say("choose")), ...options);
    const label = make("label", { for: id, class: "told", dir: "auto" }, told(input.text));
    const element = make("div", { class: "field" }, label, control);
    const problem = () => (control.value === "" ? "field_no_choice" : null);
    return { element, beside: control, problem, value: () => input.choices[Number(control.value)].value };
  }
  const controls = input.choices.map((_, place) => make("input", { type: "radio", name: id, id: `${id}-${place}`, value: String(place), autocomplete: "off" }));
  const rows = input.choices.map((choice, place) => {
    const label = make("label", { for: `${id}-${place}`, class: "told", dir: "auto" }, told(choice.text));
    return make("div", { class: "choice" }, controls[place], label);
  });
  const element = make("fieldset", {}, make("legend", { class: "told", dir: "auto" }, told(input.text)), ...rows);
  const chosen = () => controls.findIndex((control) => control.checked);
  return { element, beside: rows[0], problem: () => (chosen() < 0 ? "field_no_choice" : null), value: () => input.choices[chosen()].value };
}

// The start ------------------------------------------------------------------------------------------------------------

/** Begins where the document has a place for the page: its own, or one within the form of a survey tool. */
export function begin() {
  const root = document.getElementById("hdp-fast");
  if (root === null) return;
  const field = HERE.searchParams.get("field") ?? root.dataset.field ?? null;
  const page = new Page(root, field);
  window.addEventListener("online", () => page.retry?.());
  if (field === null) {
    // Another link that is pasted into this tab loads nothing anew by itself; nor does the way back to a page that was kept whole.
    window.addEventListener("hashchange", () => {
      if (location.hash.length < 2) return;
      takeInvitation();
      location.reload();
    });
    window.addEventListener("pageshow", (event) => event.persisted && location.reload());
  }
  page.start();
}

if (globalThis.document) begin();
