"""The paper's experiments: what is run (plan), how (runs), what came out (records), and how it is shown."""
