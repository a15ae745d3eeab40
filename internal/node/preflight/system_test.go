// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestEndpoint(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.Header["Authorization"]) > 0 || r.URL.Path != "/healthz" {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		w.Header().Set("Date", "Wed, 01 Jul 2026 12:00:00 GMT")
		http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
	}))
	defer server.Close()
	got, err := System(Config{Endpoint: server.URL}).Endpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got.URL != server.URL || got.Status != http.StatusFound || !got.Date.Equal(time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)) || time.Since(got.At) > time.Minute {
		t.Errorf("%+v", got)
	}

	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	closed := httptest.NewTLSServer(http.NotFoundHandler())
	closed.Close()
	for name, test := range map[string]struct{ url, want string }{
		"no TLS":     {strings.Replace(plain.URL, "http:", "https:", 1), "HTTP response to HTTPS client"},
		"nobody":     {closed.URL, "connection refused"},
		"plain http": {plain.URL, "not an https URL"},
		"nothing":    {"", "not an https URL"},
		"a secret":   {"https://user:secret@127.0.0.1:1", "not an https URL"},
		"no URL":     {"https://%zz", "not an https URL"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := System(Config{Endpoint: test.url}).Endpoint(t.Context())
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// serve answers on a socket in a directory with a short name.
func serve(t *testing.T, answer func(net.Conn)) string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			answer(connection)
		}
	}()
	return socket
}

func TestRuntime(t *testing.T) {
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Protocols: &protocols, Handler: http.NotFoundHandler(), ReadHeaderTimeout: time.Second}
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	defer server.Close()

	dead := filepath.Join(t.TempDir(), "s")
	gone, err := net.ListenUnix("unix", &net.UnixAddr{Name: dead})
	if err != nil {
		t.Fatal(err)
	}
	gone.SetUnlinkOnClose(false)
	_ = gone.Close()

	bin := t.TempDir()
	program := filepath.Join(bin, "containerd")
	if err := os.WriteFile(program, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		socket          string
		exists, answers bool
	}{
		"HTTP/2":     {socket, true, true},
		"HTTP/1":     {serve(t, func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n"); _ = c.Close() }), true, false},
		"no HTTP":    {serve(t, func(c net.Conn) { _, _ = c.Write(make([]byte, 9)); _ = c.Close() }), true, false},
		"silence":    {serve(t, func(net.Conn) {}), true, false},
		"nobody":     {dead, true, false},
		"no socket":  {filepath.Join(bin, "none"), false, false},
		"not a path": {filepath.Join(program, "none"), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := System(Config{RuntimeSocket: test.socket, BinDir: bin, Timeout: 200 * time.Millisecond}).Runtime(t.Context())
			if want := (Runtime{Socket: test.socket, Exists: test.exists, Answers: test.answers, Program: program}); err != nil || got != want {
				t.Errorf("%+v, %v; want %+v", got, err, want)
			}
		})
	}
}

func TestListener(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "0.0.0.0:0", "[::1]:0", "[::]:0"} {
		listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		port := listener.Addr().(*net.TCPAddr).Port
		want := fmt.Sprintf("%s (process %d)", filepath.Base(os.Args[0]), os.Getpid())
		if got, err := System(Config{}).Listener(port); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", address, got, err, want)
		}
		_ = listener.Close()
		if got, err := System(Config{}).Listener(port); err != nil || got != "" {
			t.Errorf("a port that is free: %q, %v", got, err)
		}
		if !free(port) {
			t.Error("it takes the kernel's tables to find that a port is free")
		}
	}
}

// Other programs listen on the same port of other addresses, as each account's issuers do.
func TestListenerAt(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.93.14.205:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	port := uint16(listener.Addr().(*net.TCPAddr).Port)
	own := fmt.Sprintf("%s (process %d)", filepath.Base(os.Args[0]), os.Getpid())
	for address, want := range map[string]string{"127.93.14.205": own, "::ffff:127.93.14.205": own, "127.93.14.206": "", "127.0.0.1": "", "::1": ""} {
		if got, err := ListenerAt(netip.AddrPortFrom(netip.MustParseAddr(address), port)); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", address, got, err, want)
		}
	}
	for _, all := range []string{"0.0.0.0:0", "[::]:0"} {
		listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", all)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := ListenerAt(netip.AddrPortFrom(netip.MustParseAddr("127.93.14.206"), uint16(listener.Addr().(*net.TCPAddr).Port))); err != nil || got != own {
			t.Errorf("of all addresses, %s: %q, %v", all, got, err)
		}
		_ = listener.Close()
	}
}

func anyAddress(netip.Addr) bool { return true }

const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:280A 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1234 1 0000000000000000 100 0 0 10 0
   1: 0100007F:280B 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     0        0 1235 1 0000000000000000 100 0 0 10 0
   2: 00000000000000000000000000000000:2810 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1236 1 0000000000000000 100 0 0 10 0
`

func TestListening(t *testing.T) {
	for port, want := range map[int]string{10250: "1234", 10251: "", 10256: "1236", 1: ""} {
		if inode, found, err := listening(table, port, anyAddress); err != nil || inode != want || found != (want != "") {
			t.Errorf("port %d: %q, %v, %v; want %q", port, inode, found, err, want)
		}
	}
	for _, bad := range []string{"x", "0: a:zz 0 0A 0 0 0 0 0 0", "0: 0100007F 0 0A 0 0 0 0 0 0", "0: 0:12345 0 0A 0 0 0 0 0 0", "0: 0100:0001 0 0A 0 0 0 0 0 0", "0: zz00007F:0001 0 0A 0 0 0 0 0 0"} {
		if _, _, err := listening(bad, 1, anyAddress); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

func FuzzListening(f *testing.F) {
	f.Add(table, 10250)
	f.Fuzz(func(t *testing.T, table string, port int) {
		if inode, found, err := listening(table, port, anyAddress); found != (inode != "") || found && err != nil {
			t.Errorf("%q, %v, %v", inode, found, err)
		}
	})
}

func TestLists(t *testing.T) {
	const list = "kernel/net/netfilter/nf_conntrack.ko.xz: kernel/lib/libcrc32c.ko.xz\nkernel/fs/overlayfs/overlay.ko:\nkernel/a/with-dash.ko\n"
	for module, want := range map[string]bool{"nf_conntrack": true, "overlay": true, "with_dash": true, "libcrc32c": false, "over": false, "": false} {
		if got := lists(list, module); got != want {
			t.Errorf("%s: %v", module, got)
		}
	}
}

// The module is needed. Whether there is a program that loads it matters only where it is not loaded yet.
func TestModules(t *testing.T) {
	const dep, program = "/lib/modules/6.1/modules.dep", "/sbin/modprobe"
	for name, c := range map[string]struct {
		files   []string
		want    bool
		unknown string
	}{
		"loaded":                        {[]string{"/sys/module/overlay/x"}, true, ""},
		"loaded without a program":      {[]string{"/sys/module/overlay/x", dep}, true, ""},
		"built in without a program":    {[]string{"/lib/modules/6.1/modules.builtin"}, true, ""},
		"on the disk":                   {[]string{dep, program}, true, ""},
		"on the disk without a program": {[]string{dep}, false, "install the package kmod"},
		"nowhere":                       {[]string{program}, false, ""},
	} {
		root := t.TempDir()
		for _, path := range append(c.files, "/proc/sys/kernel/modprobe") {
			content := "kernel/fs/overlayfs/overlay.ko:\n"
			if strings.HasPrefix(path, "/proc/") {
				content = program + "\n"
			}
			path = filepath.Join(root, path)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, err := modules{root: root, release: "6.1"}.has("overlay")
		if got != c.want || (err != nil) != (c.unknown != "") || err != nil && !strings.Contains(err.Error(), c.unknown) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		if result := feature(got, err, "the overlay file system", "modprobe overlay", ""); c.unknown != "" && result.Status != Warn {
			t.Errorf("%s: %+v", name, result)
		}
	}
}

func FuzzKernelVersion(f *testing.F) {
	for _, seed := range []string{"6.1.0-28-amd64", "5.12-rc3", "6", "", "a.b", "6.", "99999999.1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, release string) {
		version, err := kernelVersion(release)
		if err == nil && !strings.HasPrefix(release, fmt.Sprint(version[0])) && !strings.HasPrefix(release, "0") {
			t.Errorf("%q is %v", release, version)
		}
	})
}

func TestUnderstood(t *testing.T) {
	answer := func(kind uint16, number unix.Errno) []byte {
		b := make([]byte, unix.SizeofNlMsghdr+4)
		binary.NativeEndian.PutUint16(b[4:], kind)
		binary.NativeEndian.PutUint32(b[unix.SizeofNlMsghdr:], uint32(-int32(number)))
		return b
	}
	for name, test := range map[string]struct {
		answer []byte
		has    bool
		fails  bool
	}{
		"an answer":     {answer: answer(unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_NEWGEN, 0), has: true},
		"no nf_tables":  {answer: answer(unix.NLMSG_ERROR, unix.EINVAL)},
		"not supported": {answer: answer(unix.NLMSG_ERROR, unix.EOPNOTSUPP)},
		"not allowed":   {answer: answer(unix.NLMSG_ERROR, unix.EPERM), fails: true},
		"cut short":     {answer: []byte{1, 2, 3}, fails: true},
		"nothing":       {fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			if has, err := understood(test.answer); has != test.has || (err != nil) != test.fails {
				t.Errorf("%v, %v", has, err)
			}
		})
	}
}

// Whatever this machine is, the real host says something about all of it, and changes nothing.
func TestSystem(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	ledger := filepath.Join(t.TempDir(), "join.json")
	results := Run(ctx, System(Config{Endpoint: "https://127.0.0.1:1", NodeName: "worker-1", Ledger: ledger}))
	for _, r := range results {
		t.Logf("%-18s %-4s %s", r.Name, r.Status, r.Saw)
		if r.Name == "" || r.Status != OK && r.Status != Warn && r.Status != Fail || r.Saw == "" {
			t.Errorf("%+v", r)
		}
	}
	for name, want := range map[string]string{"hostname": OK, "kernel": OK, "endpoint": Fail, "programs": OK} {
		if got := byName(t, results, name); got.Status != want {
			t.Errorf("%+v, want %s", got, want)
		}
	}
	host := System(Config{Ledger: ledger})
	if found, err := host.Existing(); err != nil || found.ByMuster {
		t.Errorf("without a ledger: %+v, %v", found, err)
	}
	if err := os.WriteFile(ledger, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if found, err := host.Existing(); err != nil || !found.ByMuster {
		t.Errorf("with a ledger: %+v, %v", found, err)
	}
	if space, err := host.Space("/no/such/directory"); err != nil || space.Total == 0 {
		t.Errorf("space where there is nothing yet: %+v, %v", space, err)
	}
	if pids, err := host.Processes(filepath.Base(os.Args[0])); err != nil || len(pids) == 0 {
		t.Errorf("this very program: %v, %v", pids, err)
	}
	if value, err := host.Setting("kernel.ostype"); err != nil || value != "Linux" {
		t.Errorf("kernel.ostype is %q, %v", value, err)
	}
	if _, err := host.Setting("kernel.nothing"); err == nil {
		t.Error("a setting that is not there was read")
	}
	if path, err := host.Program("no-such-program"); err != nil || path != "" {
		t.Errorf("a program that is not there: %q, %v", path, err)
	}
}
