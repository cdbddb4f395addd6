package runtime

// A Pass is work being encoded. It lives within the closure given to [Runtime.Run], [Runtime.Submit] or [Runtime.Record],
// and belongs to the goroutine that closure runs on.
type Pass struct {
	rt     *Runtime
	over   bool
	count  int
	launch Launch
}

func (p *Pass) live() bool { return p != nil && !p.over }

// Runtime is the runtime that the pass belongs to.
func (p *Pass) Runtime() *Runtime { return p.rt }

// Count is the number of dispatches encoded so far.
func (p *Pass) Count() int { return p.count }

// Kernel starts a launch of the kernel of that name.
func (p *Pass) Kernel(name string) *Launch {
	p.launch.start(p, name)
	return &p.launch
}

// Barrier orders everything encoded before it with everything after it.
func (p *Pass) Barrier() error { return nil }

func (p *Pass) encode(l *Launch, pl *pipelineState, grid, threads Size, exact bool) error { return nil }
