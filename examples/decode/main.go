// Command decode lets a Gemma 3 language model continue a text, on the GPU of a Mac or on Ingot's software device.
//
//	go run . -prompt "Once upon a time"
//
// A decode step, one token, is a few dozen kernels. They are recorded once into an indirect command buffer that is
// replayed for every token: what changes from token to token is in device memory, and the kernels advance it themselves. See
// step.go for the step, and the README for the flags.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"unicode/utf8"
)

type options struct {
	model  string
	prompt string
	given  bool // a prompt was given
	n      int
	direct bool
	check  bool
	device string
	stats  bool
	trace  string
}

const (
	defaultPrompt = "Once upon a time"
	maxTokens     = 1 << 20
	maxPrompt     = 1 << 20 // bytes
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
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
	fmt.Fprintln(stderr, "decode:", err)
	return 1
}

func parseFlags(args []string, stderr io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("decode", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.model, "model", "", "`folder` of a Gemma 3 text model: config.json, model.safetensors, tokenizer.model (default: the embedded one)")
	f.StringVar(&o.prompt, "prompt", defaultPrompt, "`text` to continue")
	f.IntVar(&o.n, "n", 150, "most `tokens` to produce")
	f.BoolVar(&o.direct, "direct", false, "encode every token anew instead of replaying a recorded step")
	f.BoolVar(&o.check, "check", false, "produce the tokens both ways and compare them: for -prompt, or, without it, for every prompt of the model's golden.json")
	f.StringVar(&o.device, "device", "", "`name` of the device to use, or a part of it; \"list\" lists the devices (default: the best one)")
	f.BoolVar(&o.stats, "stats", false, "measure the host's work per token, direct and replayed")
	f.StringVar(&o.trace, "trace", "", "`file` for a trace of the host, the device and its kernels, for ui.perfetto.dev")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	f.Visit(func(f *flag.Flag) { o.given = o.given || f.Name == "prompt" })
	wrong := func(format string, args ...any) (options, error) {
		err := fmt.Errorf(format, args...)
		fmt.Fprintln(stderr, "decode:", err)
		f.Usage()
		return o, err
	}
	switch {
	case f.NArg() > 0:
		return wrong("unexpected argument %q (the prompt is given as -prompt \"text\")", f.Arg(0))
	case o.n < 1 || o.n > maxTokens:
		return wrong("-n is %d: it must be from 1 to %d", o.n, maxTokens)
	case len(o.prompt) > maxPrompt:
		return wrong("the prompt has %d bytes, the limit is %d", len(o.prompt), maxPrompt)
	case !utf8.ValidString(o.prompt):
		return wrong("the prompt is not UTF-8 text")
	case o.check && o.trace != "":
		return wrong("-trace is for a story: it does not go with -check")
	case o.check && o.direct:
		return wrong("-check compares both ways: it does not go with -direct")
	}
	return o, nil
}

func execute(ctx context.Context, o options, stdout, stderr io.Writer) (err error) {
	if o.device == "list" {
		return listDevices(stdout)
	}
	src, err := openSource(o.model)
	if err != nil {
		return err
	}
	defer src.close()

	prompts := []string{o.prompt}
	if o.check && !o.given && len(src.prompts) > 0 {
		prompts = src.prompts
	}
	var ids [][]uint32
	longest := 0
	for _, p := range prompts {
		ids = append(ids, src.encode(p))
		longest = max(longest, len(ids[len(ids)-1]))
	}

	if err := fits(src.checkpoint.Config, longest, o.n); err != nil {
		return err
	}

	rt, err := openRuntime(o.device)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	m, err := newModel(rt, src.checkpoint, longest, o.n)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.release()) }()
	fmt.Fprintf(stderr, "model:   %s\ndevice:  %s\nlibrary: %s\n\n", src.name, rt.Device().Name, rt.LibraryOrigin())

	if o.check {
		return check(ctx, m, src, prompts, ids, stdout)
	}
	way := replayed
	if o.direct {
		way = direct
	}
	var told result
	err = trace(rt, o.trace, stderr, func() error {
		told, err = tell(ctx, m, src, prompts[0], ids[0], way, stdout)
		return err
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(stderr, "\n%s\n", told)
	if o.stats {
		return measure(ctx, m, ids[0], stderr)
	}
	return nil
}
