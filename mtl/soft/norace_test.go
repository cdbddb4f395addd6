//go:build !race

package soft

const racing = false
