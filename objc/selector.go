package objc

import (
	"sync"
)

// selectors interns names where no Objective-C runtime does, and remembers them everywhere.
var selectors struct {
	sync.RWMutex
	byName map[string]SEL
	names  map[SEL]string
}

// RegisterName gives the selector of a name. It looks the name up in a table: do it once, not per message. An empty
// name gives the zero selector, which no object answers.
func RegisterName(name string) SEL {
	if name == "" {
		return 0
	}
	selectors.RLock()
	sel, ok := selectors.byName[name]
	selectors.RUnlock()
	if ok {
		return sel
	}
	selectors.Lock()
	defer selectors.Unlock()
	if sel, ok := selectors.byName[name]; ok {
		return sel
	}
	if selectors.byName == nil {
		selectors.byName = make(map[string]SEL)
		selectors.names = make(map[SEL]string)
	}
	sel = backendRegisterName(name)
	if sel == 0 {
		sel = SEL(len(selectors.byName)+1) << 4
	}
	selectors.byName[name] = sel
	selectors.names[sel] = name
	return sel
}

// String is the name of the selector. A selector that [RegisterName] never gave out is shown as "?".
func (s SEL) String() string {
	selectors.RLock()
	defer selectors.RUnlock()
	if name, ok := selectors.names[s]; ok {
		return name
	}
	return "?"
}
