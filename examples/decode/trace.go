package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/ingot-metal/ingot/runtime"
)

// tracedKernels is how many kernels the summary of a trace names.
const tracedKernels = 8

// trace runs f and writes what the host and the device did meanwhile to a file for a trace viewer; without a file it only
// runs f. A summary goes to out.
func trace(rt *runtime.Runtime, file string, out io.Writer, f func() error) (err error) {
	if file == "" {
		return f()
	}
	w, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("-trace: %w", err)
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	t, err := rt.StartTrace(runtime.TraceOptions{Kernels: true})
	if err != nil {
		return err
	}
	err = f()
	if e := t.Stop(context.Background()); err == nil {
		err = e
	}
	if _, e := t.WriteTo(w); err == nil {
		err = e
	}
	kernels := t.Kernels()
	if ok, why := t.KernelTimes(); !ok {
		fmt.Fprintf(out, "\nno times of kernels: %s\n", why)
	}
	for i, k := range kernels[:min(len(kernels), tracedKernels)] {
		if i == 0 {
			fmt.Fprintf(out, "\ntime in kernels, each run alone:\n")
		}
		fmt.Fprintf(out, "  %-40s %6d × %v\n", k.Name, k.Count, k.Total/time.Duration(k.Count))
	}
	return err
}
