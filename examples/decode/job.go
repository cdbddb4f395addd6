package main

import "errors"

// batch are texts that are decoded at once.
type batch struct {
	prompts []string
	ids     [][]uint32
}

// job is what the program was asked for.
type job struct {
	options
	settings settings
	batches  []batch // several with -check only
}

// newJob works out how many texts there are, and what the model has to be prepared for.
func newJob(src *source, o options) (*job, error) {
	j := &job{options: o}
	prompts := o.prompts
	switch {
	case o.check && len(prompts) == 0 && len(src.prompts) > 0:
		prompts = src.prompts
	case len(prompts) == 0:
		prompts = []string{defaultPrompt}
	}
	switch {
	case o.check && len(o.prompts) == 0: // each prompt for itself, in all rows
		for _, p := range prompts {
			j.batches = append(j.batches, newBatch(src, repeat(p, max(o.rows, 1))))
		}
	case len(prompts) == 1:
		j.batches = []batch{newBatch(src, repeat(prompts[0], max(o.rows, 1)))}
	default:
		j.batches = []batch{newBatch(src, prompts)}
	}
	longest := 0
	for _, b := range j.batches {
		for _, ids := range b.ids {
			if len(ids) == 0 {
				return nil, errors.New("the prompt is empty, and the model has no marker for the beginning of a text")
			}
			longest = max(longest, len(ids))
		}
	}
	j.settings = settings{sequences: len(j.batches[0].ids), longest: longest, n: o.n, sampled: !o.greedy()}
	return j, fits(src.Config, longest, o.n)
}

func newBatch(src *source, prompts []string) batch {
	b := batch{prompts: prompts}
	for _, p := range prompts {
		b.ids = append(b.ids, src.encode(p))
	}
	return b
}

func repeat(s string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = s
	}
	return all
}

func (j *job) way() way {
	if j.direct {
		return direct
	}
	return replayed
}

// samplers are new ones, one for each sequence; none if the device chooses.
func (s sampling) samplers(m *model) []*sampler {
	if !m.sampled {
		return nil
	}
	var all []*sampler
	for i := range m.sequences {
		all = append(all, newSampler(s, i, m.config.Softcap))
	}
	return all
}
