// Package mtl is Metal for compute, without cgo.
//
//go:generate go run ./internal/gen/mtlgen
package mtl
