// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"muster.dev/muster/test/host"
)

const (
	ownHostName    = "worker-2"
	ownHostAddress = "172.31.0.210"
)

// musterJoin brings a host with systemd into a cluster by muster join, and out of it by muster leave, in spite of all
// that can go wrong: wrong hashes, dead tokens, a clock that is wrong, a server that is down, kill -9.
func musterJoin(t *testing.T, i *installation, hash string) {
	s := &joinStory{guest: newGuest(t, i, hash, ownHostName, ownHostAddress)}
	s.before = s.everything(t)
	for _, step := range []struct {
		name string
		run  func(*joinStory, *testing.T)
	}{
		{"what is wrong is refused before anything changes", (*joinStory).refusals},
		{"a dry run changes nothing", (*joinStory).dryRun},
		{"what the page shows is what happens", (*joinStory).page},
		{"a clock that is far off is refused", (*joinStory).wrongClock},
		{"one that is a little off is not", (*joinStory).clockALittleOff},
		{"killed again and again, and a server that is down", (*joinStory).killed},
		{"pods run and logs go over the serving certificate", (*joinStory).pods},
		{"run again it changes nothing", (*joinStory).again},
		{"what was removed is put back", (*joinStory).repaired},
		{"what the kubelet alone does not notice is noticed", (*joinStory).watched},
		{"leave, killed too, leaves nothing", (*joinStory).leave},
		{"a server that another authority vouches for gets no token", (*joinStory).otherServer},
		{"a token for another host is denied", (*joinStory).otherTokens},
		{"a containerd that runs already is used and left alone", (*joinStory).besideContainerd},
		{"a request that nobody approves is told of", (*joinStory).waits},
		{"join again under the same name, and leave with the cluster away", (*joinStory).away},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.run(s.in(t), t) }) {
			return
		}
	}
}

type joinStory struct {
	guest
	before string // every file of the host, and what runs there
}

func (s *joinStory) in(t *testing.T) *joinStory {
	t.Helper()
	return &joinStory{guest: s.guest.in(t), before: s.before}
}

// everything is every file of the host with its mode and size, what those in /etc say, what is mounted, which units
// run, the network with its rules, and the settings of the kernel that a node's programs change.
func (s *joinStory) everything(t *testing.T) string {
	t.Helper()
	out, err := s.host.Run(t.Context(), "sh", "-c", `
find /etc /home /mnt /opt /root /srv /usr/libexec /usr/local /var /run -xdev \
	\( -path /run/systemd -o -path /var/log/journal -o -path /run/log -o -path /opt/muster/bin \) -prune -o -printf '%p %M %s %l\n' | grep -v '^/[a-z/]* d' | sort
find /etc -xdev -type f -exec sha256sum {} + | sort -k2
find /etc /opt /usr/libexec /usr/local /var -xdev -type d ! -path '/opt/muster/bin*' ! -path '/var/log/journal*' -printf '%p\n' | sort
cut -d' ' -f5 /proc/self/mountinfo | sort
systemctl list-units --no-pager --plain --no-legend --type=service,slice --state=active | cut -d' ' -f1 | grep -v '^system-\|^systemd-\|^user' | sort
ip -brief link | cut -d'@' -f1 | cut -d' ' -f1; ip route
nft --stateless list ruleset
sysctl --ignore kernel.keys.root_maxbytes kernel.keys.root_maxkeys kernel.panic kernel.panic_on_oops vm.overcommit_memory vm.panic_on_oom \
	net.ipv4.ip_forward net.ipv4.conf.all.route_localnet net.ipv6.conf.all.forwarding net.netfilter.nf_conntrack_max \
	net.netfilter.nf_conntrack_tcp_timeout_established net.netfilter.nf_conntrack_tcp_timeout_close_wait net.netfilter.nf_conntrack_tcp_be_liberal
ls /run/netns 2>/dev/null || true
`)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (s *joinStory) unchanged(t *testing.T, when string) {
	t.Helper()
	if after := s.everything(t); after != s.before {
		t.Errorf("%s the host is not what it was:\n%s", when, differences(s.before, after))
	}
}

// differences are the lines that only one of two texts has.
func differences(before, after string) string {
	var b strings.Builder
	for _, side := range []struct{ sign, of, in string }{{"-", before, after}, {"+", after, before}} {
		there := map[string]bool{}
		for line := range strings.Lines(side.in) {
			there[line] = true
		}
		for line := range strings.Lines(side.of) {
			if !there[line] {
				b.WriteString(side.sign + line)
			}
		}
	}
	return b.String()
}

// command is muster join.
func command(args ...string) []string {
	return append([]string{host.BinDir + "/muster", "join", privateServer}, args...)
}

// join runs muster join with the token on standard input, where no other process sees it.
func (s *joinStory) join(ctx context.Context, token string, args ...string) (string, error) {
	return s.host.RunWith(ctx, token+"\n", append(command("--token", "-", "--timeout", "60s"), args...)...)
}

func (s *joinStory) refusals(t *testing.T) {
	good := s.token()
	s.signed(good, true)
	deleted := s.token()
	s.signed(deleted, true)
	id, _, _ := strings.Cut(deleted, ".")
	s.installation.muster("token", "delete", id)
	expired := s.expiredToken()
	short := []string{"--timeout", "4s"}[:2:2]
	goodID, _, _ := strings.Cut(good, ".")
	for name, c := range map[string]struct {
		token string
		args  []string
		want  string
	}{
		"wrong hash":    {good, append(short, "--ca-cert-hash", "sha256:"+strings.Repeat("0", 64)), "Error: the cluster's authority is not the pinned one"},
		"no hash":       {good, short, "Error: a token alone does not tell the cluster from somebody else"},
		"wrong secret":  {goodID + "." + strings.Repeat("0", 16), append(short, "--ca-cert-hash", s.hash), "the part of the token behind the dot is wrong"},
		"deleted token": {deleted, append(short, "--ca-cert-hash", s.hash), "does not vouch for itself by the token"},
		"expired token": {expired, append(short, "--ca-cert-hash", s.hash), "does not vouch for itself by the token"},
		"bad name":      {good, append(short, "--ca-cert-hash", s.hash, "--node-name", "Worker_2"), "cannot become a node yet: hostname"},
	} {
		out, err := s.join(t.Context(), c.token, c.args...)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		if _, secret, _ := strings.Cut(c.token, "."); err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("%s: the token's secret is told:\n%v", name, err)
		}
	}
	s.unchanged(t, "after refusals")
}

func (s *joinStory) dryRun(t *testing.T) {
	token := s.token()
	out, err := s.join(t.Context(), token, "--ca-cert-hash", s.hash, "--dry-run")
	if err != nil {
		t.Fatal(err)
	}
	_, secret, _ := strings.Cut(token, ".")
	for _, want := range []string{"/etc/systemd/system/kubelet.service", "systemctl enable kubelet.service", "ExecStart=/usr/local/bin/kubelet", "a copy of /opt/muster/bin/containerd"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not printed:\n%s", want, out)
		}
	}
	if strings.Contains(out, secret) {
		t.Errorf("the token is printed:\n%s", out)
	}
	s.unchanged(t, "after a dry run")
}

// tillStep runs a command until a step's line appears among what it prints, and kills it there. It ends when the
// command is gone, and what it held with it; it tells of one that had ended by then, as after its last step.
const tillStep = `coproc muster { exec "${@:2}" 2>&1; }
pid=$muster_PID
exec 3<&"${muster[0]}"
while IFS= read -r line <&3; do
	printf '%s\n' "$line"
	case "$line" in *[0-9]"s  $1 "*) kill -KILL "$pid" 2>/dev/null; wait "$pid" && echo 'it had ended'; exit 0 ;; esac
done
exit 3
`

// killed kills muster join at each of its steps, and has it go on, or leave; and kills the API server in the end.
func (s *joinStory) killed(t *testing.T) {
	s.adminKubeconfig(t)
	var token string
	fresh := func() {
		token = s.token()
		s.signed(token, true)
		if err := s.host.Write("/root/token", token+"\n", 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// A join that is killed goes on at the next step of its round. The kubelet goes on alone, so that what happens only
	// once begins a round.
	for _, round := range [][]string{
		{"preflight", "discovery", "token", "files", "containerd", "images", "kubelet"},
		{"client CSR", "node", "kube-proxy", "ready"},
		{"certificate", "watch"},
		{"serving CSR"},
		{"programs"},
	} {
		fresh()
		for _, step := range round {
			out, err := s.host.Run(t.Context(), append([]string{"bash", "-c", tillStep, "bash", step}, command("--token-file", "/root/token", "--ca-cert-hash", s.hash)...)...)
			if err != nil {
				t.Fatalf("it did not come to the step %s: %v", step, err)
			}
			t.Logf("killed at %s:\n%s", step, out)
		}
		if out, err := s.host.Run(t.Context(), host.BinDir+"/muster", "leave", "--kubeconfig", "/root/admin.conf"); err != nil {
			t.Fatalf("after it was killed at %q: %v\n%s", round, err, out)
		}
		s.must("rm", "/root/token", "/root/admin.conf")
		s.unchanged(t, fmt.Sprintf("after a join that was killed at %q, and leave,", round))
		if nodes := s.installation.mustKubectl("get", "nodes", "-o", "name"); strings.Contains(nodes, ownHostName) {
			t.Errorf("after a join that was killed at %q, and leave, nodes: %s", round, nodes)
		}
		s.adminKubeconfig(t)
	}
	s.must("rm", "/root/admin.conf")
	fresh()
	out := s.waitsForServer(func() (string, error) { return s.join(t.Context(), token, "--ca-cert-hash", s.hash) })
	t.Logf("joined:\n%s", out)
	s.ready(t)
	for _, file := range []string{"/var/lib/kubelet/bootstrap-kubeconfig"} {
		if _, err := s.host.Run(t.Context(), "test", "!", "-e", file); err != nil {
			t.Errorf("%s is still there", file)
		}
	}
	_, secret, _ := strings.Cut(token, ".")
	if out, err := s.host.Run(t.Context(), "sh", "-c", "rm /root/token; grep -rl "+secret+" /etc /var/lib/muster /var/lib/kubelet /run/systemd /root 2>/dev/null || true; journalctl --no-pager | grep "+secret+" || true"); err != nil || strings.TrimSpace(out) != "" {
		t.Errorf("the token is kept: %v %s", err, out)
	}
}

func (s *joinStory) ready(t *testing.T) {
	t.Helper()
	if got := s.installation.mustKubectl("get", "node", ownHostName, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`); got != "True" {
		t.Errorf("Ready is %q", got)
	}
	for _, unit := range []string{"containerd", "kubelet", "kube-proxy", "muster-node-watch"} {
		if out, err := s.host.Run(t.Context(), "systemctl", "is-active", unit); err != nil {
			t.Errorf("%s: %s %v", unit, out, err)
		}
	}
	if out, err := s.host.Run(t.Context(), "systemd-analyze", "verify", "kubelet.service", "containerd.service", "kube-proxy.service", "muster-node-watch.service"); err != nil {
		t.Errorf("systemd finds fault with the units: %v %s", err, out)
	}
}

func (s *joinStory) pods(t *testing.T) {
	s.pod("on-own-host")
	now := s.everything(t)
	for _, want := range []string{"table ip kube-proxy {", "\nnet.ipv4.ip_forward = 1\n", "  /etc/kubernetes/kubelet/config.json\n"} {
		if !strings.Contains(now, want) {
			t.Errorf("%q is not among what is compared when the host has left:\n%s", want, now)
		}
	}
}

func (s *joinStory) again(t *testing.T) {
	// Pods of the cluster come and go meanwhile.
	state := func() string {
		out, err := s.host.Run(t.Context(), "sh", "-c", "systemctl show --property=MainPID kubelet containerd kube-proxy; find /etc /opt/cni /usr/local -printf '%p %M %s %T@ %l\n' | sort")
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	before := state()
	out, err := s.host.Run(t.Context(), command("--ca-cert-hash", s.hash)...)
	if err != nil {
		t.Fatal(err)
	}
	if after := state(); after != before {
		t.Errorf("something was started again, or written:\n%s\n%s", differences(before, after), out)
	}
}

func (s *joinStory) repaired(t *testing.T) {
	if out, err := s.host.Run(t.Context(), "sh", "-c", "rm /etc/systemd/system/kubelet.service /usr/local/bin/runc /etc/kubernetes/kubelet/config.json; systemctl daemon-reload; systemctl stop kubelet"); err != nil {
		t.Fatal(err, out)
	}
	if out, err := s.host.Run(t.Context(), command("--ca-cert-hash", s.hash)...); err != nil {
		t.Fatal(err, out)
	}
	s.ready(t)
}

// adminKubeconfig brings the administrator's kubeconfig to the host, where it goes by the private address.
func (s *joinStory) adminKubeconfig(t *testing.T) {
	t.Helper()
	raw := s.installation.mustKubectl("config", "view", "--raw", "--flatten", "--minify")
	var b strings.Builder
	for line := range strings.Lines(raw) {
		if at := strings.Index(line, "server: "); at >= 0 {
			line = line[:at] + "server: https://" + privateServer + "\n"
		}
		b.WriteString(line)
	}
	if err := s.host.Write("/root/admin.conf", b.String(), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (s *joinStory) leave(t *testing.T) {
	s.adminKubeconfig(t)
	leave := []string{host.BinDir + "/muster", "leave", "--kubeconfig", "/root/admin.conf"}
	// A leave that is killed goes on at the next step. Behind the line of a step it is at work on the one after it;
	// behind that of containerd, on files.
	for _, step := range []string{"drain", "kubelet", "pods", "kube-proxy", "token", "node", "containerd", "files"} {
		out, err := s.host.Run(t.Context(), append([]string{"bash", "-c", tillStep, "bash", step}, leave...)...)
		if err != nil {
			t.Fatalf("it did not come to the step %s: %v", step, err)
		}
		t.Logf("killed at %s:\n%s", step, out)
	}
	out, err := s.host.Run(t.Context(), leave...)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("left:\n%s", out)
	if out, err := s.host.Run(t.Context(), "rm", "/root/admin.conf"); err != nil {
		t.Fatal(err, out)
	}
	if got := s.installation.mustKubectl("get", "nodes", "-o", "name"); strings.Contains(got, ownHostName) {
		t.Errorf("nodes: %s", got)
	}
	s.unchanged(t, "after leave")
	if out, err := s.host.Run(t.Context(), host.BinDir+"/muster", "leave"); err != nil || !strings.Contains(out, "nothing to undo") {
		t.Errorf("leaving twice: %v %s", err, out)
	}
}

// waits joins with a token that is not bound, which nobody vouches for.
func (s *joinStory) waits(t *testing.T) {
	out, _ := s.installation.muster("token", "create")
	token := strings.TrimSpace(out)
	s.signed(token, true)
	out, err := s.join(t.Context(), token, "--ca-cert-hash", s.hash, "--timeout", "6s")
	if err == nil || !strings.Contains(err.Error(), "waits for approval; an administrator sees why with `muster csr explain csr-") || !strings.Contains(err.Error(), "not Ready after 6s") {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := s.host.Run(t.Context(), host.BinDir+"/muster", "leave"); err != nil {
		t.Fatal(err, out)
	}
	s.unchanged(t, "after a join that waited in vain, and leave")
}

func (s *joinStory) away(t *testing.T) {
	token := s.token()
	out, err := s.join(t.Context(), token, "--ca-cert-hash", s.hash, "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("joined:\n%s", out)
	s.ready(t)
	s.stopServing()
	if out, err := s.host.Run(t.Context(), host.BinDir+"/muster", "leave", "--drain-timeout", "3s"); err == nil || !strings.Contains(err.Error(), "--force") {
		t.Errorf("left without the cluster: %v %s", err, out)
	}
	if out, err := s.host.Run(t.Context(), host.BinDir+"/muster", "leave", "--force", "--drain-timeout", "3s"); err != nil {
		t.Error(err, out)
	}
	s.unchanged(t, "after leave --force")
	s.installation.muster("up")
	s.installation.mustKubectl("delete", "node", ownHostName)
	if _, err := os.Stat(s.installation.kubeconfig); err != nil {
		t.Error(fmt.Errorf("kubeconfig: %w", err))
	}
}
