// SPDX-License-Identifier: Apache-2.0

// These tests give processes users of their own, so they need root.
package supervise

import (
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/planeid"
	"muster.dev/muster/internal/plane/runner"
	"muster.dev/muster/internal/platform/atomicfile"
	"muster.dev/muster/internal/platform/socketdir"
)

// look prints for each argument whether it is read, written, listened on or connected to, and what the process is.
func look() {
	raw, err := os.ReadFile("/proc/self/status")
	fatal(err)
	for line := range strings.Lines(string(raw)) {
		for _, name := range []string{"Uid:", "Gid:", "Groups:", "CapPrm:", "CapEff:", "CapBnd:", "CapInh:", "CapAmb:", "NoNewPrivs:"} {
			if strings.HasPrefix(line, name) {
				fmt.Print(strings.Join(strings.Fields(line), " ") + "\n")
			}
		}
	}
	for _, argument := range os.Args[1:] {
		what, path, _ := strings.Cut(argument, " ")
		var err error
		switch what {
		case "read":
			_, err = os.ReadFile(path)
		case "write":
			err = os.WriteFile(path, []byte("its own"), 0o600)
		case "remove":
			err = os.Remove(path)
		case "listen":
			_, err = socketdir.Listen(nil, path) //nolint:staticcheck // SA1012: nothing waits
		case "connect":
			_, err = net.Dial("unix", path)
		}
		fmt.Printf("%s %s: %v\n", what, filepath.Base(path), err)
	}
	fmt.Println("end")
}

// planes are a world with two clusters that have ids for users.
func planes(t *testing.T) world {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("this test gives processes users of their own: run it as root")
	}
	w := newWorld(t)
	if err := planeid.Reserve(t.TempDir(), w.dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one", "two"} {
		if err := os.MkdirAll(w.dir.Cluster(name).PKI(), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := planeid.Ensure(w.dir, w.dir.Cluster(name)); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// put writes a file of root's.
func (w world) put(path string) string {
	w.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("secret"), 0o600); err != nil {
		w.Fatal(err)
	}
	return path
}

func (w world) printed(spec component.Spec) string {
	w.Helper()
	var raw []byte
	eventually(w.T, "it has looked", func() bool {
		raw, _ = os.ReadFile(LogOf(w.dir, spec))
		return strings.HasSuffix(string(raw), "end\n")
	})
	return string(raw)
}

// A component gets to its own files, and neither to those of its cluster's other components, nor of another cluster,
// nor of the account.
func TestOwnUser(t *testing.T) {
	t.Parallel()
	w := planes(t)
	one, two := w.dir.Cluster("one"), w.dir.Cluster("two")
	issued := filepath.Join(one.PKI(), "issued")
	own, shared, public := w.put(filepath.Join(issued, "own.pem")), w.put(filepath.Join(issued, "shared.pem")), w.put(filepath.Join(one.PKI(), "cluster", "ca.pem"))
	fixed, data, audit := w.put(filepath.Join(w.dir.PKI(), "account", "ca.pem")), filepath.Join(string(one), "etcd"), filepath.Join(string(one), "audit", "0")
	listens, connects := filepath.Join(w.dir.Run(), "mine.sock"), filepath.Join(w.dir.Run(), "other.sock")
	beside := w.put(filepath.Join(audit, "security.log"))
	other, err := socketdir.Listen(t.Context(), connects)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	may := []string{
		"read " + own, "read " + shared, "read " + public, "read " + fixed, "read " + filepath.Join(one.Component(component.APIServer), "config"),
		"read " + w.put(filepath.Join(data, "member", "wal")), "write " + filepath.Join(data, "member", "wal"), "write " + filepath.Join(data, "new"),
		"write " + w.put(filepath.Join(audit, "audit.log")), "write " + filepath.Join(audit, "audit-2.log"), "listen " + listens, "connect " + listens, "connect " + connects, "write /tmp/x",
	}
	mayNot := []string{
		"read " + w.put(filepath.Join(issued, "administrator.pem")), "read " + w.put(filepath.Join(one.PKI(), "cluster", "ca-key.pem")), "read " + w.put(one.Kubeconfig()),
		"read " + w.put(filepath.Join(two.PKI(), "issued", "own.pem")), "read " + w.put(two.Kubeconfig()), "read " + w.put(filepath.Join(w.dir.PKI(), "account", "ca-key.pem")),
		"read " + w.put(w.dir.ManagementKubeconfig()), "read " + w.dir.IDs(), "read " + beside, "write " + beside, "remove " + beside, "write " + own, "remove " + own,
		"connect " + w.dir.Socket(), "write /etc/x", "write " + filepath.Join(string(one), "x"), "read /etc/shadow",
	}
	spec := w.spec(component.APIServer, "look")
	spec.Cluster, spec.Args, spec.Directories = "one", slices.Concat(may, mayNot), []string{data, audit}
	spec.Files = []component.File{{Path: filepath.Join(one.Component(spec.Name), "config"), Mode: 0o600, Content: "config"}}
	spec.View = &component.View{
		Reads: []string{own}, Shared: []string{shared}, Public: []string{public}, Fixed: []string{fixed}, Writes: []string{data}, Adds: []string{audit}, Prefix: "audit",
		Listens: []string{listens}, Connects: []string{connects},
	}
	s, _ := w.runAs(Config{OwnUsers: true}, quick(), spec)
	out := w.printed(spec)
	id, found := planeid.Of(w.dir, spec.Process())
	if got := status(s, spec.Name).User; !found || got != id {
		t.Errorf("its status says user %d, want %d", got, id)
	}
	for _, want := range []string{
		fmt.Sprintf("Uid: %d %d %d %d\n", id, id, id, id), "Groups:\n", "CapPrm: 0000000000000000\n", "CapEff: 0000000000000000\n", "CapBnd: 0000000000000000\n", "CapInh: 0000000000000000\n",
		"CapAmb: 0000000000000000\n", "NoNewPrivs: 1\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("lacks %q", want)
		}
	}
	lines := strings.Split(out, "\n")
	lines = lines[len(lines)-2-len(may)-len(mayNot):]
	for i, what := range slices.Concat(may, mayNot) {
		if did := strings.HasSuffix(lines[i], ": <nil>"); did != (i < len(may)) {
			t.Errorf("%s: %s", what, lines[i])
		}
	}
	if err := os.Remove(shared); err != nil {
		t.Fatal(err)
	}
	w.put(shared) // as from a backup
	eventually(t, "a file that was made anew is its group's", func() bool {
		info, err := os.Stat(shared)
		return err == nil && info.Sys().(*syscall.Stat_t).Gid == id && info.Mode().Perm() == 0o640
	})
	if err := atomicfile.Write(own, []byte("renewed"), 0o600); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(own); err != nil || info.Sys().(*syscall.Stat_t).Uid != id {
		t.Errorf("a credential that was renewed: %v, %v", info.Sys(), err)
	}
}

// What runs as root goes on so until its next start, and is then taken over by its user; a supervisor without users
// sees what is root's alone.
func TestOwnUserAtTheNextStart(t *testing.T) {
	t.Parallel()
	w := planes(t)
	data := w.dir.Cluster("one").Etcd()
	wal := w.put(filepath.Join(data, "member", "wal"))
	spec := w.spec(component.Etcd, "wait")
	spec.Cluster = "one"
	_, stop := w.run(quick(), spec)
	eventually(t, "it runs", func() bool { return len(w.find()) == 1 })
	stop()
	before := w.find()[0]

	spec.View = &component.View{Writes: []string{data}}
	s, stop := w.runAs(Config{OwnUsers: true}, quick(), spec)
	w.ready(s, spec.Name)
	if is := status(s, spec.Name); is.PID != before.PID || is.User != 0 {
		t.Fatalf("it was not taken over as it was: %+v", is)
	}
	kill(t, before.PID, syscall.SIGKILL)
	eventually(t, "it runs again", func() bool { is := status(s, spec.Name); return is.State == runner.Ready && is.PID != before.PID })
	id, _ := planeid.Of(w.dir, spec.Process())
	stop()
	for path, mode := range map[string]fs.FileMode{data: 0o700, filepath.Dir(wal): 0o700, wal: 0o600} {
		if info, err := os.Stat(path); err != nil || info.Sys().(*syscall.Stat_t).Uid != id || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
	is := status(s, spec.Name)
	s, _ = w.runAs(Config{OwnUsers: true}, quick(), spec)
	w.ready(s, spec.Name)
	if again := status(s, spec.Name); again.PID != is.PID || again.User != id || again.Restarts != is.Restarts {
		t.Errorf("it was %+v and was taken over as %+v", is, again)
	}
}

// A process is not taken for another component's, whatever marks its user gives it.
func TestMarksOfAnotherUser(t *testing.T) {
	t.Parallel()
	w := planes(t)
	etcd, err := filepath.Abs(w.program)
	if err != nil {
		t.Fatal(err)
	}
	first, _ := planeid.Of(w.dir, "cluster/one/etcd")
	if err := os.Chmod(string(w.dir), 0o711); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(etcd)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(string(w.dir), "program")
	if err := os.WriteFile(program, raw, 0o755); err != nil {
		t.Fatal(err)
	}
	pids := map[string]int{}
	for name, user := range map[string]uint32{"cluster/one/etcd": first, "cluster/two/etcd": first, "cluster/one/kube-apiserver": first, "management-etcd": first, "cluster/two/kube-apiserver": 1234} {
		cmd := exec.Command(program)
		cmd.Env = append(Marks(w.dir, name, ""), envFake+"=wait")
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		pids[name] = cmd.Process.Pid
		defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	}
	eventually(t, "they run", func() bool {
		return !slices.ContainsFunc(slices.Collect(maps.Values(pids)), func(pid int) bool {
			at, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
			marks, readErr := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)) // there a moment later
			return err != nil || readErr != nil || at != program || !strings.Contains(string(marks), EnvProcess)
		})
	})
	if found := w.find(); len(found) != 1 || found[0].PID != pids["cluster/one/etcd"] {
		t.Errorf("found %+v", found)
	}
}
