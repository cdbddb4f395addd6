package objc

import "unsafe"

func ptr(p *int) unsafe.Pointer { return unsafe.Pointer(p) }
