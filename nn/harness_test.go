package nn

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ingot-metal/ingot/runtime"
)

// target is a buffer of any type.
type target interface {
	reset()
	bits() []uint32
	untouched()
}

// encode runs one call that must encode count dispatches, and that a check must let pass.
func encode(t testing.TB, rt *runtime.Runtime, count int, call func(p *runtime.Pass) error) {
	t.Helper()
	counted := func(p *runtime.Pass) error {
		if err := call(p); err != nil {
			return err
		}
		if p.Count() != count {
			return fmt.Errorf("%d dispatches, want %d", p.Count(), count)
		}
		return nil
	}
	if err := rt.Check(counted); err != nil {
		t.Fatal("checked: ", err)
	}
	if err := rt.Run(counted); err != nil {
		t.Fatal(err)
	}
}

// replays records a call and replays it thrice with the live values and inputs that vary sets: each time it must give
// bit for bit what the call gives when it is encoded directly.
func replays(t *testing.T, rt *runtime.Runtime, outs []target, vary func(i int), call func(p *runtime.Pass) error) {
	t.Helper()
	replaysMany(t, rt, 1, outs, vary, call)
}

// replaysMany is replays of a call that encodes count dispatches.
func replaysMany(t *testing.T, rt *runtime.Runtime, count int, outs []target, vary func(i int), call func(p *runtime.Pass) error) {
	t.Helper()
	prog, err := rt.Record(call)
	if err != nil {
		t.Fatal(err)
	}
	defer prog.Release()
	for i := range 3 {
		vary(i)
		var want [][]uint32
		for _, o := range outs {
			o.reset()
		}
		encode(t, rt, count, call)
		for _, o := range outs {
			want = append(want, o.bits())
			o.reset()
		}
		s, err := prog.Replay()
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Wait(context.Background()); err != nil {
			t.Fatal(err)
		}
		for k, o := range outs {
			for j, b := range o.bits() {
				if b != want[k][j] {
					t.Fatalf("replay %d: output %d, element %d: %#x, directly %#x", i, k, j, b, want[k][j])
				}
			}
		}
	}
}

// refusal is a call that must be refused.
type refusal struct {
	name     string
	call     func(p *runtime.Pass) error
	sentinel error
	parts    []string // of the text, the first one of the argument's name
}

// refuses makes the calls of all refusals on one pass: each must return a *runtime.Error, encode nothing and write
// nothing.
func refuses(t *testing.T, rt *runtime.Runtime, fn string, outs []target, list []refusal) {
	t.Helper()
	for _, o := range outs {
		o.reset()
	}
	err := rt.Run(func(p *runtime.Pass) error {
		for _, r := range list {
			err := r.call(p)
			if n := p.Count(); n != 0 {
				t.Fatalf("%s: %d dispatches encoded", r.name, n)
			}
			checkRefused(t, fn, r, err)
			alike(t, err, rt.Check(r.call))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range outs {
		o.untouched()
	}
}

func checkRefused(t *testing.T, fn string, r refusal, err error) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: not refused", r.name)
		return
	}
	var e *runtime.Error
	if !errors.As(err, &e) {
		t.Errorf("%s: %v is no *runtime.Error", r.name, err)
		return
	}
	if !errors.Is(err, r.sentinel) {
		t.Errorf("%s: %v, want one over %v", r.name, err, r.sentinel)
	}
	if fn != "" && e.Func != fn {
		t.Errorf("%s: function %q, want %q", r.name, e.Func, fn)
	}
	for i, part := range r.parts {
		if i == 0 && fn != "" && !strings.Contains(e.Arg, part) { // a text has most letters
			t.Errorf("%s: %q refuses %q, want %q", r.name, err, e.Arg, part)
		}
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %q does not say %q", r.name, err, part)
		}
	}
}

// scalar is what an entry point binds at a scalar slot.
type scalar struct {
	slot  int
	u     uint32
	f     float32
	float bool
}

func (s scalar) bind(b *runtime.ScalarBinder, pool *runtime.ScalarPool) error {
	if s.float {
		v, err := runtime.NewScalar(pool, s.f)
		if err != nil {
			return err
		}
		return b.Float32(s.slot, v)
	}
	v, err := runtime.NewScalar(pool, s.u)
	if err != nil {
		return err
	}
	return b.Uint32(s.slot, v)
}

func (s scalar) other() scalar {
	s.u++
	s.f += 0.5
	return s
}

// twin tests an Unsafe variant: with the documented scalars it gives what the plain call gives; with any other set it is
// refused and leaves the pass alone.
func twin(t *testing.T, rt *runtime.Runtime, outs []target, scalars []scalar, plain func(p *runtime.Pass) error,
	unsafe func(p *runtime.Pass, bind func(*runtime.ScalarBinder) error) error) {
	t.Helper()
	pool := func(rt *runtime.Runtime) *runtime.ScalarPool {
		p, err := runtime.NewScalarPool(rt, 2*len(scalars)+4)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Release() })
		return p
	}
	bindAll := func(pool *runtime.ScalarPool, list []scalar) func(b *runtime.ScalarBinder) error {
		return func(b *runtime.ScalarBinder) error {
			for _, s := range list {
				if err := s.bind(b, pool); err != nil {
					return err
				}
			}
			return nil
		}
	}

	var want [][]uint32
	for _, o := range outs {
		o.reset()
	}
	encode(t, rt, 1, plain)
	for _, o := range outs {
		want = append(want, o.bits())
		o.reset()
	}
	call := bindAll(pool(rt), scalars)
	encode(t, rt, 1, func(p *runtime.Pass) error { return unsafe(p, call) })
	for k, o := range outs {
		for j, b := range o.bits() {
			if b != want[k][j] {
				t.Fatalf("output %d, element %d: %#x, plain %#x", k, j, b, want[k][j])
			}
		}
	}
	// In a program, whose scalars are then the caller's.
	for _, o := range outs {
		o.reset()
	}
	prog, err := rt.Record(func(p *runtime.Pass) error { return unsafe(p, bindAll(pool(rt), scalars)) })
	if err != nil {
		t.Fatal(err)
	}
	defer prog.Release()
	if err := prog.Run(); err != nil {
		t.Fatal(err)
	}
	for k, o := range outs {
		for j, b := range o.bits() {
			if b != want[k][j] {
				t.Fatalf("in a program: output %d, element %d: %#x, plain %#x", k, j, b, want[k][j])
			}
		}
	}
	encode(t, rt, 1, func(p *runtime.Pass) error { return unsafe(p, nil) }) // nil binds nothing of the caller's

	foreign := pool(open(t))
	mine := errors.New("the caller's own")
	bad := []refusal{
		{"foreign pool", func(p *runtime.Pass) error { return unsafe(p, bindAll(foreign, scalars)) }, runtime.ErrForeign, nil},
		{"nothing bound", func(p *runtime.Pass) error { return unsafe(p, func(*runtime.ScalarBinder) error { return nil }) }, runtime.ErrMisuse, nil},
		{"zero scalar", func(p *runtime.Pass) error {
			return unsafe(p, func(b *runtime.ScalarBinder) error {
				if scalars[0].float {
					return b.Float32(scalars[0].slot, runtime.Scalar[float32]{})
				}
				return b.Uint32(scalars[0].slot, runtime.Scalar[uint32]{})
			})
		}, runtime.ErrMisuse, nil},
		{"the caller's error", func(p *runtime.Pass) error {
			fine := bindAll(pool(rt), scalars)
			return unsafe(p, func(b *runtime.ScalarBinder) error { return errors.Join(fine(b), mine) })
		}, mine, nil},
		{"index 30", func(p *runtime.Pass) error {
			return unsafe(p, bindAll(pool(rt), append(scalars[:len(scalars):len(scalars)], scalar{slot: 30})))
		}, runtime.ErrKernel, nil},
		{"index 0, a view", func(p *runtime.Pass) error {
			return unsafe(p, bindAll(pool(rt), append([]scalar{{slot: 0}}, scalars...)))
		}, runtime.ErrKernel, nil},
		{"index -1", func(p *runtime.Pass) error {
			return unsafe(p, bindAll(pool(rt), append([]scalar{{slot: -1}}, scalars...)))
		}, runtime.ErrKernel, nil},
	}
	for i := range scalars {
		without := append(append([]scalar{}, scalars[:i]...), scalars[i+1:]...)
		wrong := append([]scalar{}, scalars...)
		wrong[i] = wrong[i].other()
		kind := append([]scalar{}, scalars...)
		kind[i].float = !kind[i].float
		bad = append(bad,
			refusal{fmt.Sprint("without ", scalars[i].slot), func(p *runtime.Pass) error { return unsafe(p, bindAll(pool(rt), without)) }, runtime.ErrMisuse, nil},
			refusal{fmt.Sprint("twice ", scalars[i].slot), func(p *runtime.Pass) error {
				return unsafe(p, bindAll(pool(rt), append(scalars[:len(scalars):len(scalars)], scalars[i])))
			}, runtime.ErrMisuse, nil},
			refusal{fmt.Sprint("wrong value ", scalars[i].slot), func(p *runtime.Pass) error { return unsafe(p, bindAll(pool(rt), wrong)) }, runtime.ErrScalar, nil},
			refusal{fmt.Sprint("wrong kind ", scalars[i].slot), func(p *runtime.Pass) error { return unsafe(p, bindAll(pool(rt), kind)) }, runtime.ErrScalar, nil})
	}
	refuses(t, rt, "", outs, bad)
}

// alike holds what a preflight said against what its call did, but for the function's name, and gives the latter.
func alike(t testing.TB, called, validated error) error {
	t.Helper()
	says := func(err error) string {
		var e *runtime.Error
		if !errors.As(err, &e) {
			return fmt.Sprint(err)
		}
		return fmt.Sprintf("%s: have %s, need %s: %v", e.Arg, e.Have, e.Need, e.Err)
	}
	if c, v := says(called), says(validated); c != v {
		t.Errorf("the call says %q, its preflight %q", c, v)
	}
	return called
}
