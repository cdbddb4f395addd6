// Buildmetallib compiles Metal shaders to a library, and looks into libraries.
//
//	buildmetallib [flags] FILE|DIR…       compile
//	buildmetallib inspect LIBRARY         print functions and arguments
//	buildmetallib diff LIBRARY LIBRARY    compare kernels, arguments and metadata
//	buildmetallib verify LIBRARY          check that a library is well formed
//
// On a Mac, Apple's compiler is called through xcrun; anywhere, and on a Mac with -route clang, clang-22 and opt-22 are,
// with a front end and a back end of our own. The library is the same for the same compiler whatever the folder, the time
// or the machine. The xcrun route has not run on a Mac yet.
//
// With -info, the compiler's exact version and the hashes are written beside the library, and a later build with another
// version is refused: it might give other code. -upgrade overrides that.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "buildmetallib:", err)
		}
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) > 0 {
		switch args[0] {
		case "inspect":
			return inspect(args[1:], stdout)
		case "diff":
			return diff(args[1:], stdout)
		case "verify":
			return verify(args[1:], stdout)
		}
	}
	b := &build{stdout: stdout}
	flags := flag.NewFlagSet("buildmetallib", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprint(stderr, "usage: buildmetallib [flags] FILE|DIR…\n       buildmetallib inspect|verify LIBRARY\n       buildmetallib diff LIBRARY LIBRARY\n\nflags:\n")
		flags.PrintDefaults()
	}
	flags.StringVar(&b.output, "o", "default.metallib", "write the library to `FILE`")
	flags.Var((*list)(&b.include), "I", "look for #include \"file\" in `DIR` too; may be repeated")
	flags.Var((*list)(&b.defines), "D", "define `NAME[=VALUE]`; may be repeated")
	flags.StringVar(&b.route, "route", "", "compile with `clang` or xcrun; xcrun on a Mac that has it, clang otherwise")
	flags.StringVar(&b.info, "info", "", "describe the library in `FILE` (JSON), and refuse to rebuild it with other compiler versions")
	flags.StringVar(&b.source, "source", "", "write the source as a single file to `FILE`")
	flags.StringVar(&b.keep, "keep", "", "leave the stages of the compilation in `DIR` (clang only)")
	flags.BoolVar(&b.upgrade, "upgrade", false, "rebuild with other compiler versions than those of -info")
	if err := flags.Parse(args); err != nil {
		return err
	}
	b.inputs = flags.Args()
	return b.run(ctx)
}

// A list is a flag that may be given several times.
type list []string

func (l *list) String() string { return fmt.Sprint(*l) }

func (l *list) Set(s string) error {
	*l = append(*l, s)
	return nil
}
