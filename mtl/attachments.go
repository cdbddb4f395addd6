package mtl

import (
	"sync"

	"github.com/ingot-metal/ingot/objc"
)

// maxSampleAttachments is how many sample buffers a pass can name.
const maxSampleAttachments = 4

// sampleAttachments stands in for MTLComputePassSampleBufferAttachmentDescriptorArray where a device is a Go object.
type sampleAttachments struct {
	mu    sync.Mutex
	items [maxSampleAttachments]objc.ID
}

// Dealloc releases the descriptors.
func (a *sampleAttachments) Dealloc() {
	for _, id := range a.items {
		id.Release()
	}
}

var sampleAttachmentsClass *objc.GoClass

func newSampleAttachments() objc.ID { return sampleAttachmentsClass.New(&sampleAttachments{}) }

// newSampleAttachment makes a descriptor, always a Go object.
func newSampleAttachment(array objc.ID) objc.ID {
	return objc.ClassFor(array, "MTLComputePassSampleBufferAttachmentDescriptor").New()
}

func init() {
	const what = "MTLComputePassSampleBufferAttachmentDescriptorArray"
	sampleAttachmentsClass = objc.NewGoClass(what, map[string]objc.Method{
		"objectAtIndexedSubscript:": func(c *objc.Call) {
			a := c.Self().(*sampleAttachments)
			i := c.Uint(0)
			if i >= maxSampleAttachments {
				c.Refuse("sample buffer attachment %d of %d", i, maxSampleAttachments)
				return
			}
			a.mu.Lock()
			if a.items[i] == 0 {
				a.items[i] = newSampleAttachment(c.ID())
			}
			id := a.items[i].Retain()
			a.mu.Unlock()
			c.ReturnBorrowed(id.Autorelease())
		},
		// A nil descriptor empties the place. Metal copies what it is given.
		"setObject:atIndexedSubscript:": func(c *objc.Call) {
			a := c.Self().(*sampleAttachments)
			i := c.Uint(1)
			if i >= maxSampleAttachments {
				c.Refuse("sample buffer attachment %d of %d", i, maxSampleAttachments)
				return
			}
			id := objc.ID(objc.Send(c.Object(0), selCopy))
			a.mu.Lock()
			old := a.items[i]
			a.items[i] = id
			a.mu.Unlock()
			old.Release()
		},
		"copy": func(c *objc.Call) {
			a, b := c.Self().(*sampleAttachments), &sampleAttachments{}
			a.mu.Lock()
			for i, id := range a.items {
				b.items[i] = objc.ID(objc.Send(id, selCopy))
			}
			a.mu.Unlock()
			c.ReturnNew(sampleAttachmentsClass.New(b))
		},
	})
}
