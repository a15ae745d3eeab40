// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/termsafe"
)

// Endpoint asks without trust: nothing secret is sent, and nothing that comes back is believed but for a look at the
// clock.
func (s system) Endpoint(ctx context.Context) (Endpoint, error) {
	target, err := url.Parse(s.config.Endpoint)
	if err != nil || target.Scheme != "https" || target.Host == "" || target.User != nil {
		return Endpoint{}, errors.New("the address of the API server is not an https URL")
	}
	client := http.Client{
		Timeout: s.config.Timeout,
		Transport: &http.Transport{
			DisableKeepAlives: true,
			Proxy:             http.ProxyFromEnvironment,                                           // as the kubelet's will
			TLSClientConfig:   &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}, //nolint:gosec // G402: see above
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.JoinPath("healthz").String(), http.NoBody)
	if err != nil {
		return Endpoint{}, fmt.Errorf("asking %s: %w", target.Host, err)
	}
	asked := time.Now()
	response, err := client.Do(request)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok { // it repeats the URL
			err = failed.Err
		}
		return Endpoint{}, fmt.Errorf("asking %s: %w", target.Host, err)
	}
	_ = response.Body.Close()
	answer := Endpoint{URL: "https://" + target.Host, Status: response.StatusCode}
	took := time.Since(asked)
	if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		answer.Date, answer.At = date, asked.Add(took/2)
	}
	return answer, nil
}

// Runtime looks for the socket, and whether somebody behind it speaks HTTP/2, as gRPC does.
func (s system) Runtime(ctx context.Context) (Runtime, error) {
	found := Runtime{Socket: s.config.RuntimeSocket}
	var err error
	if found.Program, err = s.Program("containerd"); err != nil {
		return Runtime{}, err
	}
	if found.Exists, err = exists(found.Socket); err != nil || !found.Exists {
		return found, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	connection, err := new(net.Dialer).DialContext(ctx, "unix", found.Socket)
	if err != nil {
		return found, nil // that is the answer
	}
	defer func() { _ = connection.Close() }()
	if deadline, ok := ctx.Deadline(); ok {
		_ = connection.SetDeadline(deadline)
	}
	found.Answers = speaksHTTP2(connection)
	return found, nil
}

// speaksHTTP2 greets a server and looks at its first frame, which must be one of settings (RFC 9113, 3.4 and 4.1).
func speaksHTTP2(connection io.ReadWriter) bool {
	const settings = 4
	empty := []byte{0, 0, 0, settings, 0, 0, 0, 0, 0}
	if _, err := connection.Write(append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), empty...)); err != nil {
		return false
	}
	header := make([]byte, len(empty))
	_, err := io.ReadFull(connection, header)
	return err == nil && header[3] == settings && binary.BigEndian.Uint32(header[5:]) == 0
}

// Listener finds the socket in the kernel's tables, and then the process that has it open, if any. To read a table
// takes the kernel many milliseconds on a machine with much memory, however few sockets there are.
func (system) Listener(port int) (string, error) {
	if free(port) {
		return "", nil
	}
	return listener(port, func(netip.Addr) bool { return true })
}

// ListenerAt names the program that keeps others from listening on a port of an address, as System's Listener does for
// all addresses; "" if there is none. A socket of all addresses keeps the address, too.
func ListenerAt(at netip.AddrPort) (string, error) {
	return listener(int(at.Port()), func(local netip.Addr) bool { return local == at.Addr().Unmap() || local.IsUnspecified() })
}

// listener finds the process that listens on a port of an address that is meant.
func listener(port int, meant func(netip.Addr) bool) (string, error) {
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		raw, err := os.ReadFile(table)
		if errors.Is(err, fs.ErrNotExist) { // a kernel without IPv6
			continue
		}
		if err != nil {
			return "", err
		}
		inode, found, err := listening(string(raw), port, meant)
		if err != nil {
			return "", fmt.Errorf("reading %s: %w", table, err)
		}
		if found {
			return owner(inode), nil
		}
	}
	return "", nil
}

// free reports whether a server could have a port on all addresses now. Nobody is kept from it by the question: a
// socket that may share its address and does not listen is in no server's way (ip(7), SO_REUSEADDR). Where that cannot
// be found out it is not known to be free.
func free(port int) bool {
	socket, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil { // a kernel without IPv6
		return false
	}
	defer func() { _ = unix.Close(socket) }()
	if unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1) != nil || unix.SetsockoptInt(socket, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0) != nil {
		return false
	}
	return unix.Bind(socket, &unix.SockaddrInet6{Port: port}) == nil
}

// listening finds the inode of the socket that listens on a port of an address that is meant in a table of TCP sockets
// (proc_net(5)).
func listening(table string, port int, meant func(netip.Addr) bool) (inode string, found bool, err error) {
	const listen = "0A"
	for i, line := range strings.Split(strings.TrimSpace(table), "\n") {
		fields := strings.Fields(line)
		if i == 0 && len(fields) > 0 && fields[0] == "sl" {
			continue
		}
		if len(fields) < 10 {
			return "", false, fmt.Errorf("line %d has %d fields, not 10", i+1, len(fields))
		}
		local, digits, ok := strings.Cut(fields[1], ":")
		number, err := strconv.ParseUint(digits, 16, 16)
		if !ok || err != nil {
			return "", false, fmt.Errorf("line %d: %q is not an address", i+1, fields[1])
		}
		if int(number) != port || fields[3] != listen {
			continue
		}
		address, err := localAddress(local)
		if err != nil {
			return "", false, fmt.Errorf("line %d: %w", i+1, err)
		}
		if meant(address) {
			return fields[9], true, nil
		}
	}
	return "", false, nil
}

// localAddress reads an address of those tables: 32-bit words in hexadecimal digits, each in the host's order of bytes.
func localAddress(text string) (netip.Addr, error) {
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != net.IPv4len && len(raw) != net.IPv6len {
		return netip.Addr{}, fmt.Errorf("%q is not an address", text)
	}
	for i := 0; i < len(raw); i += 4 {
		binary.BigEndian.PutUint32(raw[i:], binary.NativeEndian.Uint32(raw[i:]))
	}
	address, _ := netip.AddrFromSlice(raw) // the length was checked above
	return address.Unmap(), nil
}

// longestName is how much is shown of a name that any user of the host can choose.
const longestName = 64

// owner names the process that has a socket open.
func owner(inode string) string {
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, link := range links {
		if target, err := os.Readlink(link); err != nil || target != "socket:["+inode+"]" {
			continue
		}
		pid, err := strconv.Atoi(strings.Split(link, "/")[2])
		if err != nil {
			continue
		}
		name := executable(pid)
		return fmt.Sprintf("%s (process %d)", termsafe.Line(name[:min(len(name), longestName)]), pid)
	}
	return "a process that cannot be seen from here"
}
