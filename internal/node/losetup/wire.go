// SPDX-License-Identifier: Apache-2.0

package losetup

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"muster.dev/muster/internal/platform/blockfs"
)

// Program is the name that muster answers to as losetup(8).
const Program = "losetup"

// Socket is where the host listens on a machine.
const Socket = "/run/muster/losetup.sock"

// Op is what a machine asks for.
type Op string

const (
	// Attach makes the file that comes with the request a device.
	Attach Op = "attach"
	// Detach takes the file from a device.
	Detach Op = "detach"
	// Resize lets a device have the size that its file has by now.
	Resize Op = "resize"
	// List lists the machine's devices.
	List Op = "list"
	// Mount makes a mount of the file system on a device of the machine's, which comes open with the request. The mount
	// comes with the answer.
	Mount Op = "mount"
)

// Request is what a machine asks, one for each connection: a line of JSON. An open file comes with Attach and Mount,
// and with nothing else.
type Request struct {
	Op Op `json:"op"`
	// ReadOnly makes a device that is only read (Attach).
	ReadOnly bool `json:"readOnly,omitempty"`
	// Number of a device (Detach, Resize).
	Number int `json:"number,omitempty"`
	// FileSystem is what is to be mounted, and how (Mount).
	FileSystem *blockfs.Request `json:"fileSystem,omitempty"`
}

// Device is a loop device of the machine's.
type Device struct {
	Number int `json:"number"`
	// FileSystem and Inode say which file is behind it.
	FileSystem uint64 `json:"fileSystem"`
	Inode      uint64 `json:"inode"`
	ReadOnly   bool   `json:"readOnly,omitempty"`
	// Detaching reports whether it goes when the last program closes it.
	Detaching bool `json:"detaching,omitempty"`
}

// Answer is what the host says: why it was not done, or the device that was attached, or all there are.
type Answer struct {
	Error string `json:"error,omitempty"`
	// Errno is that of mount(2) for the error (Mount).
	Errno   int      `json:"errno,omitempty"`
	Devices []Device `json:"devices,omitempty"`
}

const (
	// MaxRequest is how long a request may be, in bytes.
	MaxRequest = 1024
	// maxAnswer bounds an answer: a machine has some hundred devices.
	maxAnswer = 64 << 10
	// maxNumber is the highest number of a device: the kernel's minor numbers have 20 bits.
	maxNumber = 1<<20 - 1
)

// ParseRequest reads a request. files is the number of open files that came with it.
func ParseRequest(line []byte, files int) (Request, error) {
	var r Request
	if len(line) > MaxRequest {
		return r, fmt.Errorf("the request has more than %d bytes", MaxRequest)
	}
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&r); err != nil {
		return Request{}, fmt.Errorf("the request is not understood: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return Request{}, errors.New("the request is not understood: it must be one JSON object")
	}
	want := 0
	switch {
	case r.Op == Attach && r.Number == 0 && r.FileSystem == nil:
		want = 1
	case r.Op == Mount && r.FileSystem != nil && !r.ReadOnly && r.Number == 0:
		want = 1
	case (r.Op == Detach || r.Op == Resize) && !r.ReadOnly && r.FileSystem == nil && r.Number >= 0 && r.Number <= maxNumber:
	case r == Request{Op: List}:
	default:
		return Request{}, fmt.Errorf("the request is not understood: %+v", r)
	}
	if files != want {
		return Request{}, fmt.Errorf("%d open files came with the request, want %d", files, want)
	}
	return r, nil
}
