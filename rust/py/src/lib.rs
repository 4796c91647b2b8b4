//! `hdp_fast._core`: unpacks Python's arguments, releases the interpreter, calls hdp-fast-core, packs the result.
//!
//! Glue only. `array` is the only file that names numpy's types, `error` the only one that maps errors.

mod accounting;
mod adaptation;
mod additive;
mod array;
mod bit_matrix;
mod calibration;
mod device;
mod error;
mod features;
mod full_batch;
mod gf2;
mod halfspaces;
mod linear;
mod linear_model;
mod local;
mod lock;
mod noise;
mod parity;
mod records;
mod row_space;
mod run;
mod scalar;
mod score;
mod seed;
mod sgd;
mod solution;
mod stability;
mod statistics;
mod weights;

use pyo3::prelude::*;

/// The compiled kernels of hdp_fast; the public names are in the modules of hdp_fast.
#[pymodule(gil_used = false)]
mod _core {
    use super::*;

    /// What is exported is made in this order.
    #[pymodule_export]
    use seed::entropy;

    /// Done at once: what is made at first use could be waited for for ever by a child that was forked meanwhile.
    #[pymodule_init]
    fn prepare(module: &Bound<'_, PyModule>) -> PyResult<()> {
        array::prepare(module.py())?;
        module.delattr("entropy")?;
        // The stub would have to repeat this list.
        module.delattr("__all__")
    }

    #[pymodule_export]
    use accounting::{
        check_mechanism, composed_delta, composed_epsilon, gaussian_delta, gaussian_epsilon, gaussian_mu,
        optimal_delta, optimal_epsilon, renyi_divergence, renyi_epsilon,
    };
    #[pymodule_export]
    use adaptation::{adaptation_integers, adaptation_pass};
    #[pymodule_export]
    use additive::fit_additive;
    #[pymodule_export]
    use bit_matrix::BitMatrix;
    #[pymodule_export]
    use calibration::{NoiseSearch, largest_draws, largest_rate, largest_rounds, smallest_gaussian_noise};
    #[pymodule_export]
    use device::{
        device_answer, device_describe, device_line, ed25519_public, ed25519_sign, ed25519_verify, stage_places,
    };
    #[pymodule_export]
    use features::Features;
    #[pymodule_export]
    use full_batch::{full_batch_descend, full_batch_limits, full_batch_margins, full_batch_sum};
    #[pymodule_export]
    use gf2::{dot, echelon, inverse, multiply_in_cache, nullspace, ple, rank, rowspace, solve_many, stack};
    #[pymodule_export]
    use linear::separate;
    #[pymodule_export]
    use local::{
        add_geometry, add_subsets, check_bits, count_reports, keep_probability, randomized_response, respond_binary,
        respond_geometry, respond_kary, respond_noisy, respond_subsets, respond_window, truth_probability,
    };
    #[pymodule_export]
    use noise::{bernoulli, integer_noise, select, uniform_integers, weighted_draws};
    #[pymodule_export]
    use parity::{ParityMechanism, ParityRecords, plan_parity, plan_parity_uniform_target, promise_parity};

    #[pymodule_export]
    use halfspaces::{halfspace_errors, halfspace_values};
    #[pymodule_export]
    use linear_model::{linear_losses, linear_scores, linear_slopes, loss_bounds};
    #[pymodule_export]
    use row_space::{Equations, RowSpace};
    #[pymodule_export]
    use run::check_settings;
    #[pymodule_export]
    use score::{Lists, at_least_errors, conjunction_errors};
    #[pymodule_export]
    use sgd::sgd_learn;
    #[pymodule_export]
    use solution::Solution;
    #[pymodule_export]
    use stability::{AboveThreshold, AnswerTable, cell_winners, count_votes, pluralities};
    #[pymodule_export]
    use statistics::{feature_sums, nearest_points, write_features};
    #[pymodule_export]
    use weights::{DenseWeights, check_weights, project, project_in_place, project_into};

    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
