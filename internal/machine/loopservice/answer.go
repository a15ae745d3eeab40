// SPDX-License-Identifier: Apache-2.0

package loopservice

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/node/losetup"
	"muster.dev/muster/internal/platform/loopdevice"
)

// answer answers the one request of a connection.
func (a *answering) answer(ctx context.Context, connection net.Conn) {
	defer func() { _ = connection.Close() }()
	if err := connection.SetDeadline(time.Now().Add(requestPatience)); err != nil {
		return
	}
	answer, with := a.do(ctx, connection)
	defer func() { _ = with.Close() }() // nil or not
	if answer.Error != "" {
		a.log.InfoContext(ctx, "a machine's request for a block device was refused", "why", answer.Error)
	}
	raw, err := json.Marshal(answer)
	if err != nil {
		return
	}
	if err := connection.SetDeadline(time.Now().Add(requestPatience)); err != nil { // the work may have taken a while
		return
	}
	stream, ok := connection.(*net.UnixConn)
	if with == nil || !ok {
		_, _ = connection.Write(raw) // it does not wait for it
		return
	}
	_, _, _ = stream.WriteMsgUnix(raw, unix.UnixRights(int(with.Fd())), nil)
}

// do reads the request and does it. A file goes with the answer to some.
func (a *answering) do(ctx context.Context, connection net.Conn) (losetup.Answer, *os.File) {
	line, passed, err := receive(connection)
	defer func() { // nothing of it is used afterwards
		for _, descriptor := range passed {
			_ = unix.Close(descriptor)
		}
	}()
	if err != nil {
		return losetup.Answer{Error: err.Error()}, nil
	}
	request, err := losetup.ParseRequest(line, len(passed))
	if err != nil {
		return losetup.Answer{Error: err.Error()}, nil
	}
	var file *os.File
	if len(passed) > 0 {
		if file, err = take(passed[0]); err != nil {
			return losetup.Answer{Error: err.Error()}, nil
		}
		passed = nil
		defer func() { _ = file.Close() }()
	}
	if request.Op == losetup.Mount {
		mount, err := a.machines.MountDevice(ctx, a.id, file, *request.FileSystem)
		if err != nil {
			var errno unix.Errno
			_ = errors.As(err, &errno)
			return losetup.Answer{Error: err.Error(), Errno: int(errno)}, nil
		}
		a.log.InfoContext(ctx, "a file system of a machine was mounted", "device", mount.Name(), "type", request.FileSystem.Type)
		return losetup.Answer{}, mount
	}
	devices, err := a.loop(ctx, request, file)
	if err != nil {
		return losetup.Answer{Error: err.Error()}, nil
	}
	var answer losetup.Answer
	for _, d := range devices {
		answer.Devices = append(answer.Devices, losetup.Device{
			Number: d.Number, FileSystem: d.FileSystem, Inode: d.Inode, ReadOnly: d.ReadOnly, Detaching: d.Detaching,
		})
	}
	return answer, nil
}

// loop attaches, detaches, resizes or lists.
func (a *answering) loop(ctx context.Context, request losetup.Request, file *os.File) ([]loopdevice.Device, error) {
	switch request.Op {
	case losetup.Attach:
		device, err := a.machines.AttachLoop(a.id, file, request.ReadOnly)
		if err != nil {
			a.refused(ctx, a.id, err)
			return nil, err
		}
		a.log.InfoContext(ctx, "a file of a machine was attached", "device", device.Node(), "file", device.Path, "read_only", device.ReadOnly)
		return []loopdevice.Device{device}, nil
	case losetup.Detach:
		if err := a.machines.DetachLoop(a.id, request.Number); err != nil {
			return nil, err
		}
		a.log.InfoContext(ctx, "a file of a machine was detached", "number", request.Number)
		return nil, nil
	case losetup.Resize:
		return nil, a.machines.ResizeLoop(a.id, request.Number)
	default:
		return a.machines.Loops(a.id)
	}
}

// receive reads a line and the descriptors that came with it.
func receive(connection net.Conn) (line []byte, passed []int, err error) {
	stream, ok := connection.(*net.UnixConn)
	if !ok {
		return nil, nil, errors.New("not a connection of a unix socket")
	}
	buffer, rights := make([]byte, losetup.MaxRequest+1), make([]byte, unix.CmsgSpace(2*4))
	for {
		n, oobn, flags, _, err := stream.ReadMsgUnix(buffer[len(line):], rights)
		passed = append(passed, descriptorsOf(rights[:oobn])...)
		switch {
		case errors.Is(err, io.EOF):
			return nil, passed, errors.New("the request ended before its line did")
		case err != nil:
			return nil, passed, errors.New("no whole request came in time")
		case flags&unix.MSG_CTRUNC != 0 || len(passed) > 1:
			return nil, passed, errors.New("more than one open file came with the request")
		}
		line = buffer[:len(line)+n]
		if at := bytes.IndexByte(line, '\n'); at >= 0 {
			return line[:at], passed, nil
		}
		if len(line) > losetup.MaxRequest {
			return line, passed, nil // which is too long
		}
	}
}

// descriptorsOf are the open files of a control message.
func descriptorsOf(raw []byte) (descriptors []int) {
	messages, err := unix.ParseSocketControlMessage(raw)
	if err != nil {
		return nil
	}
	for i := range messages {
		if more, err := unix.ParseUnixRights(&messages[i]); err == nil {
			descriptors = append(descriptors, more...)
		}
	}
	return descriptors
}

// take makes a file of a descriptor that a machine has passed. Go waits for a file that does not block together with
// all connections of the service, and begins with asking the file whether it is ready: a program of the machine's
// (FUSE) that never answers would hold up the service. Regular files of other file systems, and block devices, cannot
// be waited for.
func take(descriptor int) (*os.File, error) {
	var system unix.Statfs_t
	if err := unix.Fstatfs(descriptor, &system); err != nil {
		return nil, fmt.Errorf("looking at the file: %w", err)
	}
	if system.Type == unix.FUSE_SUPER_MAGIC { // the kernel has answered, and not the program
		return nil, errors.New("the file must not be on a FUSE file system")
	}
	var is unix.Stat_t
	if err := unix.Fstat(descriptor, &is); err != nil {
		return nil, fmt.Errorf("looking at the file: %w", err)
	}
	if kind := is.Mode & unix.S_IFMT; kind != unix.S_IFREG && kind != unix.S_IFBLK {
		return nil, errors.New("it must be a regular file or a block device")
	}
	return os.NewFile(uintptr(descriptor), "the file"), nil
}
