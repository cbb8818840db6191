"""The P-EAGLE head: training data, training, evaluation and export."""
