package objc_test

import (
	"errors"
	"fmt"

	"github.com/ingot-metal/ingot/objc"
)

// A Go object answers a selector; the sender cannot tell it from an object of the Objective-C runtime.
func Example() {
	square := objc.NewMessage("square:", "Q@:Q")
	class := objc.NewGoClass("Calculator", map[string]objc.Method{
		"square:": func(c *objc.Call) { c.Return(c.Word(0) * c.Word(0)) },
	})
	id := class.New(nil)
	defer id.Release()
	fmt.Println(square.Send(id, 12))
	// Output: 144
}

// A failure travels as an NSError and arrives as a Go error.
func ExampleMessage_SendError() {
	open := objc.NewMessage("newFileWithName:error:", "@@:@^@")
	id := objc.NewGoClass("FileSystem", map[string]objc.Method{
		"newFileWithName:error:": func(c *objc.Call) {
			c.Fail(1, "FileDomain", 2, "no file "+objc.GoString(c.Object(0)))
		},
	}).New(nil)
	defer id.Release()
	name := objc.NSString("notes.txt")
	defer name.Release()
	_, err := open.SendError(id, uintptr(name))
	var e *objc.Error
	fmt.Println(err, errors.As(err, &e) && e.Code == 2)
	// Output: no file notes.txt (FileDomain, code 2) true
}

// Borrowed objects live until the pool drains.
func ExampleNewPool() {
	class := objc.NewGoClass("Note", map[string]objc.Method{})
	before := objc.LiveObjects()
	pool := objc.NewPool()
	class.New("borrowed").Autorelease()
	fmt.Println(objc.LiveObjects() - before)
	pool.Drain()
	fmt.Println(objc.LiveObjects() - before)
	// Output:
	// 1
	// 0
}

// What a message cannot report is latched.
func ExampleTakeError() {
	id := objc.NewGoClass("Stone", nil).New(nil)
	defer id.Release()
	objc.NewMessage("speak", "v@:").Send(id)
	fmt.Println(objc.TakeError())
	// Output: objc: unknown selector: -[Stone speak]
}
