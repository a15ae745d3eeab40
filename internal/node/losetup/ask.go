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
	ctx, cancel := context.WithTimeout(ctx, servicePatience+answerPatience)
	defer cancel()
	connection, err := dial(ctx, socket)
	if err != nil {
		return nil, err
	}
	defer func() { _ = connection.Close() }()
	if err := connection.SetDeadline(time.Now().Add(answerPatience)); err != nil {
		return nil, err
	}
	line, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	var rights []byte
	if file != nil {
		rights = unix.UnixRights(int(file.Fd()))
	}
	if _, _, err := connection.WriteMsgUnix(append(line, '\n'), rights, nil); err != nil {
		return nil, fmt.Errorf("asking Muster's service on the host: %w", err)
	}
	raw, err := io.ReadAll(io.LimitReader(connection, maxAnswer+1))
	if err != nil {
		return nil, fmt.Errorf("waiting for Muster's service on the host: %w", err)
	}
	var answer Answer
	if len(raw) > maxAnswer {
		return nil, errors.New("the service on the host answers more than it should")
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return nil, fmt.Errorf("the service on the host ended before it answered: %w; try again", err)
	}
	if answer.Error != "" {
		return nil, errors.New(answer.Error)
	}
	return answer.Devices, nil
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
