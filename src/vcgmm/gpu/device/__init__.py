"""Arrays on the device, the memory they lie in, and how the host learns of numbers there."""
