"""What every package here uses; nothing of it is public."""
