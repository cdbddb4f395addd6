// Command decode lets a language model continue a text, on the GPU of a Mac or on Ingot's software device.
//
//	go run . -prompt "Once upon a time"
//
// A decode step, one token, is a few dozen kernels. They are recorded once into an indirect command buffer that is
// replayed for every token: what changes from token to token is in device memory, and the kernels advance it themselves. See
// step.go for the step, and the README for the models and the flags.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop) // a second interrupt ends the program at once
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the program: 0 is success, 1 failure, 2 wrong usage, 130 an interrupt.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parseFlags(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	err = execute(ctx, o, stdout, stderr)
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "decode: interrupted")
		return 130 // as shells have it for SIGINT
	}
	fmt.Fprintln(stderr, "decode:", strings.ReplaceAll(err.Error(), "\n", "; ")) // joined errors have a line each
	return 1
}

func execute(ctx context.Context, o options, stdout, stderr io.Writer) (err error) {
	if o.device == "list" {
		return listDevices(stdout)
	}
	src, err := openSource(o.model)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	j, err := newJob(src, o)
	if err != nil {
		return err
	}
	rt, err := openRuntime(o.device)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	loading := newProgress(stderr, src.Bytes())
	j.settings.loaded = func(bytes int64) error {
		loading.add(bytes)
		return ctx.Err()
	}
	m, err := newModel(rt, src.Config, src, j.settings)
	loading.end()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.release()) }()
	fmt.Fprintf(stderr, "model:   %s\nweights: %s\ndevice:  %s\nlibrary: %s\n\n", src.Name, m.weights.where(), rt.Device().Name, rt.LibraryOrigin())

	if o.check {
		return check(ctx, m, src, j, stdout)
	}
	var told result
	err = trace(rt, o.trace, stderr, func() error {
		told, err = tell(ctx, m, src, j.batches[0], j, stdout)
		return err
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(stderr, "\n%s\n", told)
	if o.stats {
		return measure(ctx, m, j.batches[0], stderr)
	}
	return nil
}
