//go:build !((darwin || (linux && objcdouble)) && (amd64 || arm64))

package objc

import (
	"errors"
	"runtime"
)

// errNone is why nothing but Go objects can be sent messages.
var errNone = errors.New("there is no Objective-C runtime on " + runtime.GOOS + "/" + runtime.GOARCH)

func backendAvailable() error                                  { return errNone }
func backendRegisterName(string) SEL                           { return 0 }
func backendGetClass(string) Class                             { return 0 }
func backendNameOfClass(Class) string                          { return "?" }
func backendClassName(ID) string                               { return "?" }
func backendRetain(id ID)                                      { latchForeign(id, "retain") }
func backendRelease(id ID)                                     { latchForeign(id, "release") }
func backendAutorelease(id ID)                                 { latchForeign(id, "autorelease") }
func backendRespondsTo(ID, SEL) bool                           { return false }
func backendPoolPush() uintptr                                 { return 0 }
func backendPoolPop(uintptr)                                   {}
func backendSend(*Message, *Call, []uintptr) error             { return errNone }
func backendSendWords(*Call, []uintptr) error                  { return errNone }
func backendNewBlock(int, func([]uintptr)) (Block, error)      { return 0, errNone }
func backendBlockRetain(b Block) Block                         { latchForeign(ID(b), "copy"); return b }
func backendBlockRelease(b Block)                              { latchForeign(ID(b), "release") }
func backendConstant(Library, string) (ID, error)              { return 0, errNone }
func backendCallC(Library, string, []uintptr) (uintptr, error) { return 0, errNone }

func latchForeign(id ID, what string) {
	latch(errors.New("objc: " + what + " sent to an object that is no Go object: " + errNone.Error()))
}
