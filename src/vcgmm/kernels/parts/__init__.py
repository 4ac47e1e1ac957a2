"""What kernels are made of: vectors, products, sums, selections."""
