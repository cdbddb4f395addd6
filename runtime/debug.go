package runtime

import (
	"strings"
	"time"

	"github.com/ingot-metal/ingot/mtl"
)

// Names for tools: labels, groups and signposts. Metal's tools show them, the software device names them in its errors,
// and traces have them, also of programs, whose indirect command buffers cannot hold them.

// debugGroup is a group of dispatches in a pass. Groups are numbered from 1 in the order in which they were opened.
type debugGroup struct {
	name   string
	parent int32 // 0 if it is in none
}

// signpost is a mark in a pass before one of its commands.
type signpost struct {
	before int
	name   string
}

// debugNames are those of a pass or a program.
type debugNames struct {
	label  string
	groups []debugGroup
	posts  []signpost
}

func (d *debugNames) reset() {
	clear(d.groups)
	clear(d.posts)
	d.label, d.groups, d.posts = "", d.groups[:0], d.posts[:0]
}

// clone is a copy that lasts.
func (d *debugNames) clone() debugNames {
	return debugNames{d.label, append([]debugGroup(nil), d.groups...), append([]signpost(nil), d.posts...)}
}

// append adds the names of a program whose commands follow those before at, and returns what to add to its groups' numbers.
func (d *debugNames) append(o *debugNames, at int) int32 {
	if d.label == "" {
		d.label = o.label
	}
	groups := int32(len(d.groups))
	for _, g := range o.groups {
		if g.parent != 0 {
			g.parent += groups
		}
		d.groups = append(d.groups, g)
	}
	for _, s := range o.posts {
		s.before += at
		d.posts = append(d.posts, s)
	}
	return groups
}

// title is the label, "" where names are not wanted.
func (d *debugNames) title() string {
	if d == nil {
		return ""
	}
	return d.label
}

// postsBefore is how many signposts stand before commands that come before this one.
func (d *debugNames) postsBefore(command int) (n int) {
	if d == nil {
		return 0
	}
	for n < len(d.posts) && d.posts[n].before < command {
		n++
	}
	return n
}

func (p *Pass) named(fn string) *Error {
	if !p.live() {
		return &Error{Func: fn, Have: "a pass that is over", Need: "a pass that is being encoded", Err: ErrMisuse}
	}
	return nil
}

// Label names the pass, or the program that is being recorded: in Metal's tools, in errors, and in traces.
func (p *Pass) Label(name string) error {
	if e := p.named("Pass.Label"); e != nil {
		return e
	}
	p.st.debug.label = name
	p.st.enc.label(name)
	return nil
}

// PushDebugGroup opens a named group of what is encoded from here on, until [Pass.PopDebugGroup]. Groups may be in
// groups, and must be closed when the pass ends.
func (p *Pass) PushDebugGroup(name string) error {
	if e := p.named("Pass.PushDebugGroup"); e != nil {
		return e
	}
	st := p.st
	st.debug.groups = append(st.debug.groups, debugGroup{name, st.inGroup})
	st.inGroup = int32(len(st.debug.groups))
	return nil
}

// PopDebugGroup closes the group that was opened last.
func (p *Pass) PopDebugGroup() error {
	const fn = "Pass.PopDebugGroup"
	if e := p.named(fn); e != nil {
		return e
	}
	if p.st.inGroup == 0 {
		return &Error{Func: fn, Have: "no open group", Need: "one of Pass.PushDebugGroup", Err: ErrMisuse}
	}
	p.st.inGroup = p.st.debug.groups[p.st.inGroup-1].parent
	return nil
}

// InsertDebugSignpost marks this point of the pass: what is encoded next follows it.
func (p *Pass) InsertDebugSignpost(name string) error {
	if e := p.named("Pass.InsertDebugSignpost"); e != nil {
		return e
	}
	p.st.debug.posts = append(p.st.debug.posts, signpost{p.st.count, name})
	return nil
}

// openGroup refuses a pass that ends within a group.
func (st *passState) openGroup(fn string) *Error {
	if st.inGroup == 0 {
		return nil
	}
	return &Error{Func: fn, Arg: "encode", Have: "the open debug group \"" + st.debug.groups[st.inGroup-1].name + "\"",
		Need: "a Pass.PopDebugGroup for each Pass.PushDebugGroup", Err: ErrMisuse}
}

// groupPath names a group and those around it.
func groupPath(groups []debugGroup, g int32) string {
	var names []string
	for ; g > 0; g = groups[g-1].parent {
		names = append(names, groups[g-1].name)
	}
	for i, j := 0, len(names)-1; i < j; i, j = i+1, j-1 {
		names[i], names[j] = names[j], names[i]
	}
	return strings.Join(names, "/")
}

func groupDepth(groups []debugGroup, g int32) (n int) {
	for ; g > 0; g = groups[g-1].parent {
		n++
	}
	return n
}

// commonGroup is the innermost group that both are in.
func commonGroup(groups []debugGroup, a, b int32) int32 {
	for da, db := groupDepth(groups, a), groupDepth(groups, b); a != b; {
		if da >= db {
			a = groups[a-1].parent
			da--
		} else {
			b = groups[b-1].parent
			db--
		}
	}
	return a
}

// label names the encoder, if there is one.
func (e *encoder) label(name string) {
	if c := e.current(); !c.IsNil() && name != "" {
		c.SetLabel(name)
	}
}

// enter brings the encoder into a group: it closes and opens what lies between.
func (e *encoder) enter(g int32) {
	if e.debug == nil || e.group == g {
		return
	}
	groups := e.debug.groups
	common := commonGroup(groups, e.group, g)
	for ; e.group != common; e.group = groups[e.group-1].parent {
		e.current().PopDebugGroup()
	}
	e.push(common, g)
	e.group = g
}

// push opens the groups from below common down to g.
func (e *encoder) push(common, g int32) {
	if g == common {
		return
	}
	e.push(common, e.debug.groups[g-1].parent)
	e.current().PushDebugGroup(e.debug.groups[g-1].name)
}

// signposts inserts those that stand before command n.
func (e *encoder) signposts(n int) {
	if e.debug == nil {
		return
	}
	for ; e.posted < len(e.debug.posts) && e.debug.posts[e.posted].before <= n; e.posted++ {
		e.current().InsertDebugSignpost(e.debug.posts[e.posted].name)
	}
}

// openSpan is a group whose kernels are being seen.
type openSpan struct {
	group    int32
	depth    int
	from, to time.Duration
}

// groupSpans turns the times of kernels into those of their groups: from the first kernel to the last.
type groupSpans struct {
	groups []debugGroup
	open   []openSpan
}

// extend adds a kernel of a group. Groups that it is not in have ended; ended is told.
func (s *groupSpans) extend(g int32, from, to time.Duration, ended func(*openSpan)) {
	common := int32(0)
	if n := len(s.open); n > 0 {
		common = commonGroup(s.groups, s.open[n-1].group, g)
	}
	for n := len(s.open); n > 0 && s.open[n-1].group != common; n = len(s.open) {
		ended(&s.open[n-1])
		s.open = s.open[:n-1]
	}
	s.push(common, g, from)
	for i := range s.open {
		s.open[i].to = max(s.open[i].to, to)
	}
}

func (s *groupSpans) push(common, g int32, from time.Duration) {
	if g == common {
		return
	}
	s.push(common, s.groups[g-1].parent, from)
	s.open = append(s.open, openSpan{group: g, depth: len(s.open), from: from, to: from})
}

// labelBuffer names a command buffer.
func labelBuffer(cb mtl.CommandBuffer, name string) {
	if name != "" {
		cb.SetLabel(name)
	}
}
