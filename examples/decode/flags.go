package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"unicode/utf8"
)

type options struct {
	model   string
	prompts []string // as given; none means defaultPrompt
	n       int
	rows    int // texts at once
	sampling
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

// list is a flag that may be given several times.
type list []string

func (l *list) String() string     { return "" }
func (l *list) Set(s string) error { *l = append(*l, s); return nil }

func parseFlags(args []string, stderr io.Writer) (options, error) {
	var o options
	var prompts list
	f := flag.NewFlagSet("decode", flag.ContinueOnError)
	f.SetOutput(io.Discard) // an error takes one line, without all flags below it
	f.StringVar(&o.model, "model", "", "`path` of a model: a .gguf file, or a folder from Hugging Face with config.json, safetensors and tokenizer (default: the embedded one)")
	f.Var(&prompts, "prompt", "`text` to continue; given several times, texts that are continued at once (default \""+defaultPrompt+"\")")
	f.IntVar(&o.n, "n", 150, "most `tokens` to produce, for each text")
	f.IntVar(&o.rows, "rows", 0, fmt.Sprintf("`number` of texts to decode at once, up to %d: of one prompt as many continuations (default: the number of prompts)", maxSequences))
	f.Float64Var(&o.temperature, "temperature", 0, "how much is left to chance: 0 takes the most likely token, 1 draws as the model says")
	f.IntVar(&o.topK, "top-k", 0, "draw from this many most likely `tokens` only; 0 for all")
	f.Float64Var(&o.topP, "top-p", 1, "draw from the fewest most likely tokens that have this `probability` together")
	f.Uint64Var(&o.seed, "seed", 1, "`number` that draws begin with; each text at once has one more than that before")
	f.BoolVar(&o.direct, "direct", false, "encode every token anew instead of replaying a recorded step")
	f.BoolVar(&o.check, "check", false, "produce the tokens both ways and compare them: for -prompt, or, without it, for every prompt of the model's golden.json")
	f.StringVar(&o.device, "device", "", "`name` of the device to use, or a part of it; \"list\" lists the devices (default: the best one)")
	f.BoolVar(&o.stats, "stats", false, "measure the host's work per token, direct and replayed")
	f.StringVar(&o.trace, "trace", "", "`file` for a trace of the host, the device and its kernels, for ui.perfetto.dev")
	err := f.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		f.SetOutput(stderr)
		f.Usage()
		return o, err
	}
	if err == nil {
		o.prompts = prompts
		given := map[string]bool{}
		f.Visit(func(f *flag.Flag) { given[f.Name] = true })
		err = o.validate(f.Args(), given)
	}
	if err != nil {
		fmt.Fprintf(stderr, "decode: %v (-h lists the flags)\n", err)
	}
	return o, err
}

// validate says what is wrong with options.
func (o *options) validate(args []string, given map[string]bool) error {
	if len(args) > 0 {
		return fmt.Errorf("unexpected argument %q (the prompt is given as -prompt \"text\")", args[0])
	}
	for _, p := range o.prompts {
		switch {
		case len(p) > maxPrompt:
			return fmt.Errorf("the prompt has %d bytes, the limit is %d", len(p), maxPrompt)
		case !utf8.ValidString(p):
			return errors.New("the prompt is not UTF-8 text")
		}
	}
	switch {
	case o.n < 1 || o.n > maxTokens:
		return fmt.Errorf("-n is %d: it must be from 1 to %d", o.n, maxTokens)
	case given["rows"] && (o.rows < 1 || o.rows > maxSequences):
		return fmt.Errorf("-rows is %d: it must be from 1 to %d", o.rows, maxSequences)
	case len(o.prompts) > maxSequences:
		return fmt.Errorf("there are %d prompts: at most %d texts are decoded at once", len(o.prompts), maxSequences)
	case given["rows"] && len(o.prompts) > 1 && o.rows != len(o.prompts):
		return fmt.Errorf("-rows is %d, but there are %d prompts: give one for all rows, or one for each", o.rows, len(o.prompts))
	case o.check && o.trace != "":
		return errors.New("-trace is for a story: it does not go with -check")
	case o.check && o.stats:
		return errors.New("-stats is for a story: it does not go with -check")
	case o.check && o.direct:
		return errors.New("-check compares both ways: it does not go with -direct")
	}
	return o.sampling.validate(given)
}

// validate says what is wrong with how tokens are to be chosen.
func (s sampling) validate(given map[string]bool) error {
	switch {
	case !(s.temperature >= 0) || math.IsInf(s.temperature, 1):
		return fmt.Errorf("-temperature is %g: it must be a number from 0 on", s.temperature)
	case s.topK < 0:
		return fmt.Errorf("-top-k is %d: it must be from 0 on", s.topK)
	case !(s.topP > 0 && s.topP <= 1):
		return fmt.Errorf("-top-p is %g: it must be greater than 0 and at most 1", s.topP)
	}
	for _, name := range []string{"top-k", "top-p", "seed"} {
		if given[name] && !given["temperature"] {
			return fmt.Errorf("-%s does nothing without -temperature", name)
		}
	}
	return nil
}
