// SPDX-License-Identifier: Apache-2.0

package statedir_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"muster.dev/muster/internal/platform/statedir"
)

func TestDefault(t *testing.T) {
	home := t.TempDir()
	if os.Geteuid() != 0 {
		t.Fatal("this test needs root: it is about both root and ordinary users")
	}
	for _, test := range []struct {
		name string
		env  map[string]string
		user bool // the directory is an ordinary user's
		want string
	}{
		{name: "environment", env: map[string]string{statedir.Env: "/some/where", "XDG_STATE_HOME": "/xdg"}, want: "/some/where"},
		{name: "environment, as a user", env: map[string]string{statedir.Env: "/some/where"}, user: true, want: "/some/where"},
		{name: "XDG", env: map[string]string{"XDG_STATE_HOME": "/xdg"}, user: true, want: "/xdg/muster"},
		{name: "relative XDG is ignored, as its specification says", env: map[string]string{"XDG_STATE_HOME": "xdg", "HOME": home}, user: true, want: filepath.Join(home, ".local/state/muster")},
		{name: "home", env: map[string]string{"HOME": home}, user: true, want: filepath.Join(home, ".local/state/muster")},
		{name: "no home", user: true, want: "/tmp/muster-65534"},
		{name: "root", env: map[string]string{"XDG_STATE_HOME": "/xdg", "HOME": home}, want: "/var/lib/muster"},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, name := range []string{statedir.Env, "XDG_STATE_HOME", "HOME", "TMPDIR"} {
				t.Setenv(name, test.env[name])
			}
			if test.user {
				becomeUser(t)
			}
			if got := statedir.Default(); got != test.want {
				t.Errorf("Default() = %q, want %q", got, test.want)
			}
		})
	}
}

// becomeUser makes the process an ordinary user until the test ends.
func becomeUser(t *testing.T) {
	t.Helper()
	const keep, nobody = -1, 65534
	if err := syscall.Setreuid(keep, nobody); err != nil {
		t.Fatalf("becoming an ordinary user: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Setreuid(keep, 0); err != nil {
			t.Fatalf("becoming root again: %v", err)
		}
	})
}

// short makes a directory whose path is short enough for a state directory.
func short(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "m") //nolint:usetesting // t.TempDir is too long
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func TestOpen(t *testing.T) {
	dir := short(t)
	for _, path := range []string{"private", "open", "target"} {
		if err := os.Mkdir(filepath.Join(dir, path), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(dir, "open"), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("target", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	long := filepath.Join(dir, strings.Repeat("l", 80))
	if err := os.Mkdir(long, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(long, filepath.Join(dir, "tolong")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for _, test := range []struct {
		name, path string
		want       string // the directory, or
		refused    string // the text of the error
	}{
		{name: "private", path: filepath.Join(dir, "private"), want: filepath.Join(dir, "private")},
		{name: "relative", path: "private", want: filepath.Join(dir, "private")},
		{name: "untidy", path: dir + "//x/../private/", want: filepath.Join(dir, "private")},
		{name: "not there", path: filepath.Join(dir, "new"), want: filepath.Join(dir, "new")},
		{name: "not there, nor its parent", path: filepath.Join(dir, "new/newer"), want: filepath.Join(dir, "new/newer")},
		{name: "link", path: filepath.Join(dir, "link"), want: filepath.Join(dir, "target")},
		{name: "not there, below a link", path: filepath.Join(dir, "link/new/newer"), want: filepath.Join(dir, "target/new/newer")},
		{name: "80 bytes", path: "/" + strings.Repeat("x", 79), want: "/" + strings.Repeat("x", 79)},
		{name: "81 bytes", path: "/" + strings.Repeat("x", 80), refused: "81 bytes long; sockets below it need it to be 80 at most"},
		{name: "link to a long path", path: filepath.Join(dir, "tolong"), refused: "sockets below it"},
		{name: "open to the group", path: filepath.Join(dir, "open"), refused: "mode 0750"},
		{name: "file", path: filepath.Join(dir, "file"), refused: "is a file"},
		{name: "below a file", path: filepath.Join(dir, "file/below"), refused: "not a directory"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := statedir.Open(test.path)
			if test.refused != "" {
				if err == nil || !strings.Contains(err.Error(), test.refused) {
					t.Fatalf("Open(%q) = %q, %v; want an error with %q", test.path, got, err, test.refused)
				}
				return
			}
			if err != nil || string(got) != test.want {
				t.Errorf("Open(%q) = %q, %v; want %q", test.path, got, err, test.want)
			}
		})
	}
	if _, err := os.Stat(filepath.Join(dir, "new")); err == nil {
		t.Error("Open made a directory")
	}
}

func TestOpenRefusesAnothersDirectory(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("this test needs root, to give a directory away")
	}
	dir := short(t)
	if err := os.Chown(dir, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if _, err := statedir.Open(dir); err == nil || !strings.Contains(err.Error(), "belongs to user 65534") {
		t.Errorf("Open of another user's directory: %v", err)
	}
}

func TestExists(t *testing.T) {
	dir := statedir.Dir(t.TempDir())
	if dir.Exists() {
		t.Error("an empty directory was never used")
	}
	if err := os.WriteFile(dir.Layout(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if !dir.Exists() {
		t.Error("a directory with a layout was used")
	}
}

// A unix socket's path may have 107 bytes (unix(7)), in the longest state directory too.
func TestSocketsAreShortEnough(t *testing.T) {
	dir, err := statedir.Open("/" + strings.Repeat("x", 79))
	if err != nil {
		t.Fatal(err)
	}
	for _, socket := range []string{dir.Socket(), dir.EgressSocket(strings.Repeat("x", 63)), dir.MachinesSocket(), dir.VPCSocket("vpc-0123456789abcdef0"), dir.WayOutSocket("vpc-0123456789abcdef0"), dir.BalancerSocket("vpc-0123456789abcdef0")} {
		if len(socket) > 107 {
			t.Errorf("%s has %d bytes", socket, len(socket))
		}
	}
}
