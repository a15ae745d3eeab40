// SPDX-License-Identifier: Apache-2.0

package loopservice

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
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
	line, files, err := receive(connection)
	defer func() {
		for _, file := range files {
			_ = file.Close()
		}
	}()
	if err != nil {
		return losetup.Answer{Error: err.Error()}, nil
	}
	request, err := losetup.ParseRequest(line, len(files))
	if err != nil {
		return losetup.Answer{Error: err.Error()}, nil
	}
	if request.Op == losetup.Mount {
		mount, err := a.machines.MountDevice(ctx, a.id, files[0], *request.FileSystem)
		if err != nil {
			var errno unix.Errno
			_ = errors.As(err, &errno)
			return losetup.Answer{Error: err.Error(), Errno: int(errno)}, nil
		}
		a.log.InfoContext(ctx, "a file system of a machine was mounted", "device", mount.Name(), "type", request.FileSystem.Type)
		return losetup.Answer{}, mount
	}
	devices, err := a.loop(ctx, request, files)
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

// loop attaches, detaches or lists.
func (a *answering) loop(ctx context.Context, request losetup.Request, files []*os.File) ([]loopdevice.Device, error) {
	switch request.Op {
	case losetup.Attach:
		device, err := a.machines.AttachLoop(a.id, files[0], request.ReadOnly)
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
	default:
		return a.machines.Loops(a.id)
	}
}

// receive reads a line and the open files that came with it.
func receive(connection net.Conn) (line []byte, files []*os.File, err error) {
	stream, ok := connection.(*net.UnixConn)
	if !ok {
		return nil, nil, errors.New("not a connection of a unix socket")
	}
	buffer, rights := make([]byte, losetup.MaxRequest+1), make([]byte, unix.CmsgSpace(2*4))
	for {
		n, oobn, flags, _, err := stream.ReadMsgUnix(buffer[len(line):], rights)
		more := filesOf(rights[:oobn])
		files = append(files, more...)
		switch {
		case errors.Is(err, io.EOF):
			return nil, files, errors.New("the request ended before its line did")
		case err != nil:
			return nil, files, errors.New("no whole request came in time")
		case flags&unix.MSG_CTRUNC != 0 || len(files) > 1:
			return nil, files, errors.New("more than one open file came with the request")
		}
		line = buffer[:len(line)+n]
		if at := bytes.IndexByte(line, '\n'); at >= 0 {
			return line[:at], files, nil
		}
		if len(line) > losetup.MaxRequest {
			return line, files, nil // which is too long
		}
	}
}

// filesOf are the open files of a control message.
func filesOf(raw []byte) (files []*os.File) {
	messages, err := unix.ParseSocketControlMessage(raw)
	if err != nil {
		return nil
	}
	for i := range messages {
		descriptors, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			continue
		}
		for _, descriptor := range descriptors {
			files = append(files, os.NewFile(uintptr(descriptor), "the file"))
		}
	}
	return files
}
