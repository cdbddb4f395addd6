package soft

import (
	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/objc"
)

func (d *device) librarySource(source string, options objc.ID) (*library, *refusal) {
	return nil, refuse(mtl.LibraryErrorInternal, "%s", (source))
}
