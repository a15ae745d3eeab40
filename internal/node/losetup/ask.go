// SPDX-License-Identifier: Apache-2.0

package losetup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/blockfs"
)

const (
	// answerPatience is how long the host may take for an answer.
	answerPatience = 30 * time.Second
	// servicePatience is how long it is waited for a service that does not listen: it may be starting again.
	servicePatience = 10 * time.Second
	retryInterval   = 100 * time.Millisecond
)

// Ask asks the host by a socket. The file is nil but with Attach.
func Ask(ctx context.Context, socket string, request Request, file *os.File) ([]Device, error) {
	answer, _, err := exchange(ctx, socket, request, file, answerPatience)
	if err != nil {
		return nil, err
	}
	if answer.Error != "" {
		return nil, errors.New(answer.Error)
	}
	return answer.Devices, nil
}

// AskMount asks the host for a mount of the file system on a device. The mount is not attached to a path yet. The error
// wraps the errno that mount(2) has for it; the check of a file system may take minutes.
func AskMount(ctx context.Context, socket string, device *os.File, fileSystem blockfs.Request) (*os.File, error) {
	answer, mount, err := exchange(ctx, socket, Request{Op: Mount, FileSystem: &fileSystem}, device, blockfs.Patience+answerPatience)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", err, unix.EAGAIN)
	case answer.Error != "" && answer.Errno > 0 && answer.Errno < maxErrno:
		return nil, &refusal{answer.Error, unix.Errno(answer.Errno)}
	case answer.Error != "":
		return nil, &refusal{answer.Error, unix.EPERM}
	case mount == nil:
		return nil, fmt.Errorf("the service on the host answers without a mount: %w", unix.EIO)
	}
	return mount, nil
}

// refusal is the host's reason for not mounting a device.
type refusal struct {
	why   string
	errno unix.Errno
}

func (r *refusal) Error() string { return r.why }

func (r *refusal) Unwrap() error { return r.errno }

// maxErrno is above all errors of the kernel.
const maxErrno = 4096

// exchange asks for one thing. A file that comes with the answer is the caller's if there is no error in it.
func exchange(ctx context.Context, socket string, request Request, file *os.File, patience time.Duration) (answer Answer, with *os.File, err error) {
	ctx, cancel := context.WithTimeout(ctx, servicePatience+patience)
	defer cancel()
	connection, err := dial(ctx, socket)
	if err != nil {
		return answer, nil, err
	}
	defer func() { _ = connection.Close() }()
	if err := connection.SetDeadline(time.Now().Add(patience)); err != nil {
		return answer, nil, err
	}
	line, err := json.Marshal(request)
	if err != nil {
		return answer, nil, err
	}
	var rights []byte
	if file != nil {
		rights = unix.UnixRights(int(file.Fd()))
	}
	if _, _, err := connection.WriteMsgUnix(append(line, '\n'), rights, nil); err != nil {
		return answer, nil, fmt.Errorf("asking Muster's service on the host: %w", err)
	}
	raw, files, err := readAnswer(connection)
	defer func() {
		for _, one := range files {
			if one != with {
				_ = one.Close()
			}
		}
	}()
	if err != nil {
		return answer, nil, fmt.Errorf("waiting for Muster's service on the host: %w", err)
	}
	if len(raw) > maxAnswer {
		return answer, nil, errors.New("the service on the host answers more than it should")
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return answer, nil, fmt.Errorf("the service on the host ended before it answered: %w; try again", err)
	}
	if answer.Error == "" && len(files) == 1 {
		with = files[0]
	}
	return answer, with, nil
}

// readAnswer reads to the end, or until it is more than an answer, and takes what open files come with it.
func readAnswer(connection *net.UnixConn) (raw []byte, files []*os.File, err error) {
	buffer, rights := make([]byte, maxAnswer+1), make([]byte, unix.CmsgSpace(4))
	for len(raw) <= maxAnswer {
		n, oobn, _, _, err := connection.ReadMsgUnix(buffer[len(raw):], rights)
		files = append(files, filesOf(rights[:oobn])...)
		raw = buffer[:len(raw)+n]
		if errors.Is(err, io.EOF) || err == nil && n == 0 {
			return raw, files, nil
		}
		if err != nil {
			return raw, files, err
		}
	}
	return raw, files, nil
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
			files = append(files, os.NewFile(uintptr(descriptor), "mount"))
		}
	}
	return files
}

// dial connects to the service, which may be starting again.
func dial(ctx context.Context, socket string) (*net.UnixConn, error) {
	until := time.Now().Add(servicePatience)
	for {
		connection, err := new(net.Dialer).DialContext(ctx, "unix", socket)
		if err == nil {
			unixConnection, ok := connection.(*net.UnixConn)
			if !ok {
				return nil, fmt.Errorf("%s is not a unix socket", socket)
			}
			return unixConnection, nil
		}
		if away := errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ECONNREFUSED); !away || time.Now().After(until) {
			return nil, fmt.Errorf("the service on the host, which attaches files for this machine, does not answer: %w; it runs if `muster status` on the host says so", err)
		}
		select {
		case <-time.After(retryInterval):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
