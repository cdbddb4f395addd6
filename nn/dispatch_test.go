package nn

import (
	"errors"
	"os"
	"testing"

	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
)

// A function of several launches has none of them in the pass when the last one is refused: for memory that the host has
// mapped, which only a launch finds, and for memory that cannot be written.
func TestSeveralLaunchesOrNone(t *testing.T) {
	rt, r := open(t), source(77)
	s := newAttn(t, rt, r, attnCase{b: 1, tq: 1, h: 2, hkv: 1, capacity: 8, tkv: 4})
	attnScratch := output[float32](t, rt, AttnDecodeScratch(s.d)).s

	const n = 600
	logits := newBuffer(t, rt, normals(r, n, 1)).s
	token, indices, values := output[uint32](t, rt, 1).s, output[uint32](t, rt, ArgmaxScratch(n)).s, output[float32](t, rt, ArgmaxScratch(n)).s

	const m, rows, cols = 12, 64, 64
	w := normals(r, rows*cols, 1)
	dense, err := UploadDense(rt, w, rows, cols)
	if err != nil {
		t.Fatal(err)
	}
	affine, err := quant.QuantizeAffine(w, rows, cols, quant.AffineFormat{Bits: 4, GroupSize: 64, Scale: quant.ScaleBF16})
	if err != nil {
		t.Fatal(err)
	}
	tiles, err := affine.Plane()
	if err != nil {
		t.Fatal(err)
	}
	plane, err := UploadAffinePlane(rt, tiles)
	if err != nil {
		t.Fatal(err)
	}
	x := newBuffer(t, rt, normals(r, m*cols, 1)).s
	tableLen, sumsLen := QMMAffinePlaneScratch(m, cols)
	table, sums := output[half.BFloat16](t, rt, tableLen).s, output[float32](t, rt, sumsLen).s

	const most = 4096 // numbers of a result, a page or more on any system
	path := t.TempDir() + "/page"
	if err := os.WriteFile(path, make([]byte, 4*most), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := runtime.MapFile(rt, path)
	if err != nil {
		t.Skip("no memory that is read only:", err)
	}
	readOnly, err := runtime.As[float32](file.View())
	if err != nil {
		t.Fatal(err)
	}
	mapped := output[float32](t, rt, most).s
	// Of m vectors the second launch takes the last ones.
	lease, err := mapped.Slice(m*rows-1, m*rows).Map()
	if err != nil {
		t.Fatal(err)
	}
	defer lease.Unmap()
	whole := output[float32](t, rt, most).s
	held, err := whole.Map()
	if err != nil {
		t.Fatal(err)
	}
	defer held.Unmap()

	for name, call := range map[string]func(p *runtime.Pass, out runtime.Slice[float32]) error{
		"FlashAttnDecode": func(p *runtime.Pass, out runtime.Slice[float32]) error {
			return FlashAttnDecode(p, out, s.q.s, s.k.s, s.v.s, s.live, attnScratch, s.d)
		},
		"Attention": func(p *runtime.Pass, out runtime.Slice[float32]) error {
			return Attention(p, out, s.q.s, s.k.s, s.v.s, s.live, attnScratch, s.d)
		},
		"Argmax": func(p *runtime.Pass, out runtime.Slice[float32]) error {
			return Argmax(p, ArgmaxArgs{Token: token, Value: out, Logits: logits, ScratchIndex: indices, ScratchValue: values, N: n})
		},
		"RowExactMatvec": func(p *runtime.Pass, out runtime.Slice[float32]) error {
			return RowExactMatvec(p, out, dense, x, RowExactContiguous(m, rows, cols))
		},
		"QMMAffinePlane": func(p *runtime.Pass, out runtime.Slice[float32]) error {
			return QMMAffinePlane(p, QMMAffinePlaneArgs{Y: out, W: plane, X: x, M: m, Table: table, Sums: sums})
		},
	} {
		for kind, c := range map[string]struct {
			out  runtime.Slice[float32]
			need error
		}{"mapped": {whole, runtime.ErrBusy}, "its end mapped": {mapped, runtime.ErrBusy}, "read-only": {readOnly, runtime.ErrMisuse}} {
			if kind == "its end mapped" && name != "RowExactMatvec" && name != "QMMAffinePlane" {
				continue
			}
			err := rt.Run(func(p *runtime.Pass) error {
				err := call(p, c.out)
				if p.Count() != 0 {
					t.Errorf("%s, %s: %d launches encoded by a call that says %v", name, kind, p.Count(), err)
				}
				return err
			})
			if !errors.Is(err, c.need) {
				t.Errorf("%s, %s: %v", name, kind, err)
			}
		}
	}
}
