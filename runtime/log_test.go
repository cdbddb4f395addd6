package runtime

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/mtl/soft"
)

func TestLog(t *testing.T) {
	var b bytes.Buffer
	log := slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug}))
	rt, dev := softRuntime(t, soft.Options{NoIndirectCompute: true}, WithLogger(log))
	x, err := NewSlice[uint32](rt, 4)
	require.NoError(t, err)
	tr, err := rt.StartTrace(TraceOptions{})
	require.NoError(t, err)
	_, err = rt.Record(func(p *Pass) error { return bump(p, x, 1) })
	require.NoError(t, err)
	require.NoError(t, tr.Stop(t.Context()))
	require.NoError(t, soft.Inject(dev, soft.Faults{Commit: 1}))
	require.Error(t, rt.Run(func(p *Pass) error { return bump(p, x, 1) }))
	require.NoError(t, rt.Close())
	text := b.String()
	for _, want := range []string{
		`level=INFO msg="runtime open" device="Ingot Software Device"`, `level=DEBUG msg="trace started"`, `level=DEBUG msg="pipeline made" kernel=add`,
		`level=WARN msg="program is encoded again on each replay"`, `level=DEBUG msg="trace stopped"`, `level=ERROR msg="device failure"`,
		`level=DEBUG msg="runtime closed" submissions=1`,
	} {
		require.Contains(t, text, want)
		text = text[strings.Index(text, want):] // in this order
	}
}
