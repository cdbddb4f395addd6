package main

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ingot-metal/ingot/examples/decode/internal/checkpoint"
	"github.com/ingot-metal/ingot/mtl/soft"
	"github.com/ingot-metal/ingot/nn"
	"github.com/ingot-metal/ingot/runtime"
)

// benchmarked are models to read prompts with: the embedded one, and some with random weights.
func benchmarked(b *testing.B) []struct {
	name   string
	config *checkpoint.Config
	tensors
} {
	src, err := openSource("")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { src.Close() })
	list := []struct {
		name   string
		config *checkpoint.Config
		tensors
	}{{"MLX 4 bits", src.Config, src}}
	for _, w := range []nn.WeightType{nn.WeightBF16, nn.WeightQ8_0, nn.WeightQ4_K} {
		c := wide(llama())
		c.Positions = 512
		list = append(list, struct {
			name   string
			config *checkpoint.Config
			tensors
		}{w.String(), c, newFake(b, c, all(plain(w)))})
	}
	return list
}

// BenchmarkPrompt reads prompts in tiles and token by token, and reports how many times as much the latter takes: of time,
// and, on the software device, of instructions and of bytes moved.
func BenchmarkPrompt(b *testing.B) {
	for _, model := range benchmarked(b) {
		for _, n := range []int{8, 32, 128, 512} {
			if n == 512 && model.name != "Q4_K" { // the largest tile takes long
				continue
			}
			b.Run(fmt.Sprintf("%s/%d", model.name, n), func(b *testing.B) {
				prompt := make([]uint32, n)
				for i := range prompt {
					prompt[i] = uint32(i*i%model.config.Vocab + 1)
					prompt[i] %= uint32(model.config.Vocab)
				}
				rt := openRuntimeFor(b)
				m, err := newModel(rt, model.config, model.tensors, one(n, 1))
				if err != nil {
					b.Fatal(err)
				}
				readingTime(b, m, prompt, true) // records the tiles
				var tiles, steps time.Duration
				for b.Loop() {
					tiles += readingTime(b, m, prompt, true)
					steps += readingTime(b, m, prompt, false)
				}
				b.ReportMetric(float64(steps)/float64(tiles), "time-ratio")
				b.ReportMetric(0, "ns/op")
				tilesWork := readingWork(b, model.config, model.tensors, prompt, true)
				stepsWork := readingWork(b, model.config, model.tensors, prompt, false)
				b.ReportMetric(stepsWork[0]/tilesWork[0], "instructions-ratio")
				b.ReportMetric(stepsWork[1]/tilesWork[1], "bytes-ratio")
				if err := m.release(); err != nil {
					b.Error(err)
				}
			})
		}
	}
}

func readingTime(b *testing.B, m *model, prompt []uint32, tiles bool) time.Duration {
	b.Helper()
	ctx, first := context.Background(), 0
	if tiles {
		first = len(prompt) - 1
	}
	if err := m.start(0, prompt, first); err != nil {
		b.Fatal(err)
	}
	begin := time.Now()
	var last runtime.Submission
	var err error
	if tiles {
		last, err = m.read(ctx, replayed, len(prompt))
	} else {
		last, err = m.burst(ctx, replayed, len(prompt))
	}
	if err == nil {
		err = last.Wait(ctx)
	}
	if err != nil {
		b.Fatal(err)
	}
	return time.Since(begin)
}

// readingWork is how many instructions and bytes a software device takes for a prompt.
func readingWork(b *testing.B, c *checkpoint.Config, t tensors, prompt []uint32, tiles bool) (work [2]float64) {
	b.Helper()
	dev := soft.New(soft.Options{Counts: true})
	defer dev.Release()
	rt, err := runtime.Open(runtime.WithDevice(dev))
	if err != nil {
		b.Fatal(err)
	}
	m, err := newModel(rt, c, t, one(len(prompt), 1))
	if err != nil {
		b.Fatal(err)
	}
	readingTime(b, m, prompt, tiles)
	for _, k := range soft.Stats(dev).Kernels {
		work[0] += float64(k.Instructions)
		for slot := range k.Read {
			work[1] += float64(k.Read[slot] + k.Written[slot])
		}
	}
	if err := errors.Join(m.release(), rt.Close()); err != nil {
		b.Error(err)
	}
	return work
}
