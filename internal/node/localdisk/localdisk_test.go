// SPDX-License-Identifier: Apache-2.0

package localdisk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/node/nodeconfig"
)

var errKilled = errors.New("killed") //nolint:gochecknoglobals // a constant

// machine is one with disks, and the programs that change them.
type machine struct {
	t    *testing.T
	root string
	// on is what lsblk says is on a disk: FSTYPE and LABEL.
	on      map[string][2]string
	mounted map[string]bool
	calls   []string
	apart   bool // the array is not assembled
	failAt  int  // of the commands that change something; 0: nowhere
	said    string
}

func newMachine(t *testing.T, disks int) *machine {
	t.Helper()
	m := &machine{t: t, root: t.TempDir(), on: map[string][2]string{}, mounted: map[string]bool{}}
	for _, dir := range []string{"/dev/disk/by-id", unitDir, "/dev/md"} {
		m.mkdir(dir)
	}
	for i := range disks {
		device := fmt.Sprintf("/dev/nvme%dn1", i+1)
		m.put(device)
		m.on[device] = [2]string{}
		for _, suffix := range []string{"", "_1"} { // newer udevs have two names for each
			link := filepath.Join(m.root, fmt.Sprintf("/dev/disk/by-id/nvme-Amazon_EC2_NVMe_Instance_Storage_AWS%d%s", i, suffix))
			if err := os.Symlink(filepath.Join(m.root, device), link); err != nil {
				t.Fatal(err)
			}
		}
	}
	return m
}

func (m *machine) mkdir(path string) {
	if err := os.MkdirAll(filepath.Join(m.root, path), 0o755); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) put(path string) {
	m.mkdir(filepath.Dir(path))
	if err := os.WriteFile(filepath.Join(m.root, path), nil, 0o600); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) run(_ context.Context, program string, args ...string) (string, error) {
	last := args[len(args)-1]
	switch program {
	case "lsblk":
		if slices.Contains(args, "--noheadings") {
			if last == "/dev/md127" {
				last = arrayPath
			}
			return strings.Join([]string{m.on[last][0], m.on[last][1], "\n"}, " "), nil
		}
		children := ""
		if m.on[last][0] == "linux_raid_member" && !m.apart {
			children = `{"name":"/dev/md127","type":"raid0","fstype":null,"label":null,"mountpoints":[null]}`
		}
		return fmt.Sprintf(`{"blockdevices":[{"name":%q,"type":"disk","fstype":%q,"label":%q,"mountpoints":[null],"children":[%s]}]}`, last, m.on[last][0], m.on[last][1], children), nil
	case "mountpoint":
		if !m.mounted[last] {
			return "", errors.New("is not a mountpoint")
		}
		return "", nil
	}
	m.calls = append(m.calls, program+" "+strings.Join(args, " "))
	if len(m.calls) == m.failAt {
		return "", errKilled
	}
	switch program {
	case "mkfs.xfs":
		if last == "/dev/md127" {
			last = arrayPath
		}
		if m.on[last][0] != "" {
			return "", errors.New("it has something on it")
		}
		m.on[last] = [2]string{"xfs", args[2]}
	case "mdadm":
		for _, arg := range args {
			if args[0] == "--create" && strings.HasPrefix(arg, "/dev/nvme") {
				m.on[arg] = [2]string{"linux_raid_member", "any:muster"}
			}
		}
		m.put(arrayPath)
	case "systemctl":
		if args[0] != "enable" {
			break
		}
		raw, err := os.ReadFile(filepath.Join(m.root, unitDir, last))
		if err != nil {
			return "", err
		}
		_, where, _ := strings.Cut(string(raw), "\nWhere=")
		where, _, _ = strings.Cut(where, "\n")
		m.mounted[where] = true
	}
	return "", nil
}

func (m *machine) setup(s nodeconfig.LocalStorage) error {
	m.calls = nil
	return Setup(m.t.Context(), Config{Root: m.root, Storage: s, Systemd: true, Run: m.run, Say: func(what string) { m.said += what + "\n" }})
}

func TestStrategies(t *testing.T) {
	for name, tc := range map[string]struct {
		disks   int
		storage nodeconfig.LocalStorage
		calls   []string
		mounts  []string
	}{
		"no strategy": {disks: 2},
		"no disks":    {storage: nodeconfig.LocalStorage{Strategy: RAID0}},
		"one disk as an array": {
			disks: 1, storage: nodeconfig.LocalStorage{Strategy: RAID0},
			calls: []string{
				"mdadm --create /dev/md/muster --run --force --level=0 --name=muster --raid-devices=1 /dev/nvme1n1", "mkfs.xfs -q -L muster-raid /dev/md/muster",
				"systemctl daemon-reload", `systemctl enable --now -- mnt-k8s\x2ddisks-0.mount`, "systemctl daemon-reload", "systemctl enable --now -- var-lib-kubelet.mount",
				"systemctl daemon-reload", "systemctl enable --now -- var-lib-containerd.mount", "systemctl daemon-reload", "systemctl enable --now -- var-log-pods.mount",
			},
			mounts: []string{"/mnt/k8s-disks/0", "/var/lib/containerd", "/var/lib/kubelet", "/var/log/pods"},
		},
		"four as RAID10, elsewhere, for the kubelet alone": {
			disks: 4, storage: nodeconfig.LocalStorage{Strategy: RAID10, MountPath: "/data/", DisabledMounts: []string{"Containerd", "PodLogs"}},
			calls: []string{
				"mdadm --create /dev/md/muster --run --force --level=10 --name=muster --raid-devices=4 /dev/nvme1n1 /dev/nvme2n1 /dev/nvme3n1 /dev/nvme4n1",
				"mkfs.xfs -q -L muster-raid /dev/md/muster", "systemctl daemon-reload", "systemctl enable --now -- data-0.mount", "systemctl daemon-reload", "systemctl enable --now -- var-lib-kubelet.mount",
			},
			mounts: []string{"/data/0", "/var/lib/kubelet"},
		},
		"two by themselves": {
			disks: 2, storage: nodeconfig.LocalStorage{Strategy: Mount},
			calls: []string{
				"mkfs.xfs -q -L muster-disk0 /dev/nvme1n1", "mkfs.xfs -q -L muster-disk1 /dev/nvme2n1",
				"systemctl daemon-reload", `systemctl enable --now -- mnt-k8s\x2ddisks-1.mount`, "systemctl daemon-reload", `systemctl enable --now -- mnt-k8s\x2ddisks-2.mount`,
			},
			mounts: []string{"/mnt/k8s-disks/1", "/mnt/k8s-disks/2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, tc.disks)
			if err := m.setup(tc.storage); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.calls, m.calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			var mounts []string
			for where := range m.mounted {
				mounts = append(mounts, where)
			}
			slices.Sort(mounts)
			if diff := cmp.Diff(tc.mounts, mounts); diff != "" {
				t.Errorf("mounts (-want +got):\n%s", diff)
			}
			if none := strings.Contains(m.said, "no instance-store disks"); none != (tc.disks == 0) {
				t.Errorf("said %q", m.said)
			}
			if err := m.setup(tc.storage); err != nil || len(m.calls) > 0 {
				t.Errorf("done again: %q, %v", m.calls, err)
			}
		})
	}
}

// Killed before any of its changes, it is whole when it is done again, and formats nothing twice.
func TestKilledAnywhere(t *testing.T) {
	for _, storage := range []nodeconfig.LocalStorage{{Strategy: RAID0}, {Strategy: Mount}} {
		reference := newMachine(t, 3)
		if err := reference.setup(storage); err != nil {
			t.Fatal(err)
		}
		for n := 1; n <= len(reference.calls); n++ {
			m := newMachine(t, 3)
			m.failAt = n
			if err := m.setup(storage); !errors.Is(err, errKilled) {
				t.Fatalf("%s, %d: %v", storage.Strategy, n, err)
			}
			m.failAt = 0
			if err := m.setup(storage); err != nil {
				t.Errorf("%s, killed at change %d: %v", storage.Strategy, n, err)
			}
			if diff := cmp.Diff(reference.mounted, m.mounted); diff != "" {
				t.Errorf("%s, killed at change %d (-want +got):\n%s", storage.Strategy, n, diff)
			}
			if diff := cmp.Diff(reference.on, m.on); diff != "" {
				t.Errorf("%s, killed at change %d (-want +got):\n%s", storage.Strategy, n, diff)
			}
		}
	}
}

// Nothing that has anything on it is ever changed.
func TestRefusals(t *testing.T) {
	for name, tc := range map[string]struct {
		disks   int
		change  func(*machine)
		storage nodeconfig.LocalStorage
		want    string
	}{
		"a file system":                   {2, func(m *machine) { m.on["/dev/nvme2n1"] = [2]string{"ext4", "data"} }, nodeconfig.LocalStorage{Strategy: RAID0}, `/dev/nvme2n1 is in use: it has a ext4 "data" on it`},
		"somebody's array":                {2, func(m *machine) { m.on["/dev/nvme2n1"] = [2]string{"linux_raid_member", "h:0"} }, nodeconfig.LocalStorage{Strategy: Mount}, "it holds /dev/md127"},
		"an array of another strategy":    {2, func(m *machine) { m.on["/dev/nvme2n1"] = [2]string{"linux_raid_member", "h:muster"} }, nodeconfig.LocalStorage{Strategy: Mount}, "an array of another strategy"},
		"half an array":                   {2, func(m *machine) { m.on["/dev/nvme2n1"] = [2]string{"linux_raid_member", "h:muster"} }, nodeconfig.LocalStorage{Strategy: RAID0}, "1 disks are in an array already and 1 are not"},
		"a disk of another strategy":      {2, func(m *machine) { m.on["/dev/nvme2n1"] = [2]string{"xfs", "muster-disk0"} }, nodeconfig.LocalStorage{Strategy: RAID0}, "a file system of another strategy"},
		"a node's data would be hidden":   {1, func(m *machine) { m.put("/var/lib/kubelet/pki/key") }, nodeconfig.LocalStorage{Strategy: RAID0}, "/var/lib/kubelet is not empty"},
		"too few for RAID10":              {3, nil, nodeconfig.LocalStorage{Strategy: RAID10}, "needs 4 disks, and this machine has 3"},
		"more than have a name each":      {11, nil, nodeconfig.LocalStorage{Strategy: Mount}, "10 can be mounted each by itself"},
		"a path that systemd would split": {1, nil, nodeconfig.LocalStorage{Strategy: RAID0, MountPath: "/a b"}, "mountPath"},
		"an unknown strategy":             {1, nil, nodeconfig.LocalStorage{Strategy: "RAID5"}, "is none of RAID0, RAID10 and Mount"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, tc.disks)
			if tc.change != nil {
				tc.change(m)
			}
			err := m.setup(tc.storage)
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if len(m.calls) > 0 {
				t.Errorf("it changed something: %q", m.calls)
			}
		})
	}
	m := newMachine(t, 1)
	if err := Setup(t.Context(), Config{Root: m.root, Storage: nodeconfig.LocalStorage{Strategy: RAID0}, Run: m.run, Say: func(string) {}}); err == nil || !strings.Contains(err.Error(), "no systemd") {
		t.Errorf("without systemd: %v", err)
	}
}

// An array that nobody has assembled at this boot is assembled, and not made again.
func TestAnArrayIsAssembled(t *testing.T) {
	m := newMachine(t, 2)
	storage := nodeconfig.LocalStorage{Strategy: RAID0}
	if err := m.setup(storage); err != nil {
		t.Fatal(err)
	}
	m.apart = true
	if err := m.setup(storage); err != nil || !slices.Equal(m.calls, []string{"mdadm --assemble /dev/md/muster /dev/nvme1n1 /dev/nvme2n1"}) {
		t.Errorf("calls %q, %v", m.calls, err)
	}
}

func TestPartitionsAreNoDisks(t *testing.T) {
	m := newMachine(t, 0)
	m.put("/dev/nvme1n1p1")
	if err := os.Symlink(filepath.Join(m.root, "/dev/nvme1n1p1"), filepath.Join(m.root, "/dev/disk/by-id/nvme-Amazon_EC2_NVMe_Instance_Storage_AWS0-part1")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/nowhere", filepath.Join(m.root, "/dev/disk/by-id/nvme-Amazon_EC2_NVMe_Instance_Storage_GONE")); err != nil {
		t.Fatal(err)
	}
	if disks, err := (Config{Root: m.root}).detect(); err != nil || len(disks) > 0 {
		t.Errorf("found %v, %v", disks, err)
	}
}

// The output of lsblk decides whether a disk is in use.
func TestParse(t *testing.T) {
	one := func(rest string) string { return `{"blockdevices":[{"name":"/dev/a","type":"disk",` + rest + `}]}` }
	for said, want := range map[string]state{
		one(`"fstype":null,"label":null,"mountpoints":[null]`):                                                   {device: "/dev/a", blank: true},
		one(`"fstype":"xfs","label":"muster-disk3","mountpoints":["/mnt"]`):                                      {device: "/dev/a", label: "muster-disk3"},
		one(`"fstype":"linux_raid_member","label":"h:muster","children":[{"name":"/dev/md127","type":"raid0"}]`): {device: "/dev/a", array: true, holds: "/dev/md127"},
	} {
		if got, err := parse("/dev/a", said); err != nil || got != want {
			t.Errorf("%s: %+v, %v", said, got, err)
		}
	}
	for said, want := range map[string]string{
		one(`"fstype":null,"mountpoints":["/mnt"]`):                                                          "it is mounted at /mnt",
		one(`"fstype":null,"children":[{"name":"/dev/a1","type":"part"}]`):                                   "it holds /dev/a1",
		one(`"fstype":"xfs","label":"data"`):                                                                 `it has a xfs "data" on it`,
		one(`"fstype":"linux_raid_member","label":"h:muster","children":[{"name":"/dev/a1","type":"part"}]`): "it holds /dev/a1",
		`{"blockdevices":[]}`: "0 devices",
		`lsblk: no`:           "cannot be read",
	} {
		if _, err := parse("/dev/a", said); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", said, err, want)
		}
	}
}

func TestUnitNames(t *testing.T) {
	for path, want := range map[string]string{
		"/var/lib/kubelet": "var-lib-kubelet.mount", "/mnt/k8s-disks/0/": `mnt-k8s\x2ddisks-0.mount`, "/.a": `\x2ea.mount`, "/a_b:c.d": "a_b:c.d.mount",
	} {
		if got := unitName(path); got != want {
			t.Errorf("%s is %s, not %s", path, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`{"blockdevices":[{"name":"/dev/nvme1n1","type":"disk","fstype":null,"label":null,"mountpoints":[null]}]}`)
	f.Add(`{"blockdevices":[{"name":"/dev/nvme1n1","fstype":"xfs","label":"muster-disk0","mountpoints":["/mnt"]}]}`)
	f.Add(`{"blockdevices":[{"name":"/dev/nvme1n1","fstype":null,"children":[{"name":"/dev/nvme1n1p1","type":"part"}]}]}`)
	f.Fuzz(func(t *testing.T, said string) {
		s, err := parse("/dev/nvme1n1", said)
		if err == nil && s.blank && (strings.Contains(said, `"fstype":"ext4"`) && !strings.Contains(said, `"fstype":null`)) && strings.Count(said, "fstype") == 1 {
			t.Errorf("%s is blank", said)
		}
	})
}
