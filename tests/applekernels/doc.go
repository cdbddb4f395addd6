// Package applekernels runs kernels that Apple's compiler made, published in an npm package, on the software device and
// compares them with oracles written from their formulas. It shows that not only this project's own compiler feeds the
// executor.
package applekernels
