package metallib

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/ingot-metal/ingot/metallib/air"
)

// Inspect prints what a library holds: its versions, the bytes of each family of functions, its functions, and the arguments of
// its kernels.
func Inspect(w io.Writer, l *Library) error {
	if l == nil {
		return errors.New("metallib: cannot print library: it is nil")
	}
	p := &printer{w: w}
	p.printf("Metal library: container %s, %s", l.Container, l.Type)
	if l.Stub {
		p.printf(" stub")
	}
	p.printf(", for %s", l.platform())
	if l.OS != (Version{}) {
		p.printf(" %s", l.OS)
	}
	p.printf(", %d functions\n", len(l.Functions))
	for _, e := range l.Extension {
		switch {
		case e.Tag == "UUID" && len(e.Data) == 16:
			p.printf("UUID %X-%X-%X-%X-%X\n", e.Data[:4], e.Data[4:6], e.Data[6:8], e.Data[8:10], e.Data[10:])
		case e.Section && e.Tag != "":
			p.printf("section %s, %d bytes\n", e.Tag, len(e.Data))
		}
	}
	p.families(l)
	for i := range l.Functions {
		if err := p.function(&l.Functions[i]); err != nil {
			return err
		}
	}
	return p.err
}

// platform names the system a library is for; old containers say only whether it is macOS.
func (l *Library) platform() string {
	switch {
	case l.Platform != UnknownPlatform:
		return l.Platform.String()
	case l.ForMac:
		return MacOS.String()
	}
	return "iOS or another system"
}

// A printer keeps the first error of writing.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

func (p *printer) families(l *Library) {
	if p.err != nil {
		return
	}
	fmt.Fprintln(p.w)
	t := tabwriter.NewWriter(p.w, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "functions\tbytes\t  family")
	total := 0
	for _, f := range l.Families() {
		fmt.Fprintf(t, "%d\t%d\t  %s\n", f.Functions, f.Bytes, f.Name)
		total += f.Bytes
	}
	fmt.Fprintf(t, "%d\t%d\t  in all\n", len(l.Functions), total)
	p.err = t.Flush()
}

func (p *printer) function(f *Function) error {
	p.printf("\n%s %s: AIR %s, Metal %s, %d bytes, SHA-256 %x\n", f.Type, f.Name, f.AIR, f.Metal, len(f.Bitcode), f.Hash)
	for _, c := range f.Constants {
		p.printf("    function constant %d: %s %s\n", c.Index, c.Type, c.Name)
	}
	m, err := f.Module()
	if err != nil {
		return err
	}
	ks, err := m.Kernels()
	if err != nil {
		return fmt.Errorf("metallib: function %s: %w", clip(f.Name), err)
	}
	p.printf("    target %s\n", m.Triple)
	for _, k := range ks {
		if k.Name == f.Name {
			p.kernel(k)
		}
	}
	return p.err
}

func (p *printer) kernel(k *air.Kernel) {
	if k.MaxThreads > 0 {
		p.printf("    at most %d threads per threadgroup\n", k.MaxThreads)
	}
	if k.ThreadgroupBytes > 0 {
		p.printf("    %d bytes of static threadgroup memory\n", k.ThreadgroupBytes)
	}
	if p.err != nil {
		return
	}
	t := tabwriter.NewWriter(p.w, 0, 8, 2, ' ', 0)
	for _, a := range k.Args {
		line := fmt.Sprintf("    %s\t%s\t%s", argPlace(a), a.TypeName, a.Name)
		if notes := argNotes(a); notes != "" {
			line += "\t" + notes
		}
		fmt.Fprintln(t, line)
	}
	p.err = t.Flush()
}

// argPlace says where an argument comes from, as Metal's attributes do.
func argPlace(a air.KernelArg) string {
	switch a.Kind {
	case air.BufferArg:
		return fmt.Sprintf("buffer(%d)", a.Index)
	case air.ThreadgroupArg:
		return fmt.Sprintf("threadgroup(%d)", a.Index)
	case air.TextureArg:
		return fmt.Sprintf("texture(%d)", a.Index)
	case air.SamplerArg:
		return fmt.Sprintf("sampler(%d)", a.Index)
	}
	return a.Builtin
}

func argNotes(a air.KernelArg) string {
	var notes []string
	if a.Kind == air.BufferArg {
		switch {
		case a.Space == 2:
			notes = append(notes, "constant")
		case a.Writable:
			notes = append(notes, "device, read and written")
		default:
			notes = append(notes, "device, read")
		}
	}
	if a.Size > 0 {
		notes = append(notes, fmt.Sprintf("%d bytes aligned to %d", a.Size, a.Align))
	}
	if a.Constant != "" {
		notes = append(notes, "if "+a.Constant)
	}
	if a.Unused {
		notes = append(notes, "unused")
	}
	return strings.Join(notes, ", ")
}
