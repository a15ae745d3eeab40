// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/test/host"
)

// skewPath is where a host has test/skew: not among what a story compares.
const skewPath = "/tmp/skew"

// skewed is a command that sees another time of day.
func skewed(offset string, command ...string) []string {
	return append([]string{skewPath, offset}, command...)
}

// installSkew builds test/skew and puts it on the host.
func (g guest) installSkew(t *testing.T) {
	t.Helper()
	built := filepath.Join(t.TempDir(), "skew")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", built, "../skew")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building test/skew: %v\n%s", err, out)
	}
	program, err := os.ReadFile(built)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.host.Write(skewPath, string(program), 0o755); err != nil {
		t.Fatal(err)
	}
}

const skewDropIn = "/etc/systemd/system/kubelet.service.d/90-skew.conf"

// skewKubelet has systemd start the kubelet, with the arguments that its unit gives it, so that it sees another time,
// until it is undone. The tracer is one more process of the unit, which is over with the last of them (KillMode).
func (g guest) skewKubelet(t *testing.T, offset, args string) (undo func()) {
	t.Helper()
	const cleared = "ExecStart=\n" // the unit's own commands
	line := "ExecStart=" + strings.Join(skewed(offset, "/usr/local/bin/kubelet", args), " ") + "\n"
	if err := g.host.Write(skewDropIn, "[Service]\nKillMode=mixed\n"+cleared+line, 0o644); err != nil {
		t.Fatal(err)
	}
	g.must("systemctl", "daemon-reload")
	return func() {
		g.must("sh", "-c", "rm "+skewDropIn+"; rmdir --ignore-fail-on-non-empty "+filepath.Dir(skewDropIn)+"; systemctl daemon-reload")
	}
}

// beats tells by the node's Ready condition how far its kubelet's clock is ahead.
func (g guest) beats(t *testing.T) time.Duration {
	t.Helper()
	at, err := time.Parse(time.RFC3339, g.installation.mustKubectl("get", "node", g.host.Name, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].lastHeartbeatTime}`))
	if err != nil {
		t.Fatal(err)
	}
	return time.Until(at)
}

// wrongClock joins with a clock that is two hours off: muster join says so, with what to do about it, and changes
// nothing. Whoever goes on nevertheless, with a clock that is behind, is told so again when the cluster's certificates
// turn out to be not valid yet.
func (s *joinStory) wrongClock(t *testing.T) {
	s.installSkew(t)
	token := s.token()
	s.signed(token, true)
	join := func(offset string, args ...string) (string, error) {
		args = append(command("--token", "-", "--timeout", "8s", "--ca-cert-hash", s.hash), args...)
		return s.host.RunWith(t.Context(), token+"\n", skewed(offset, args...)...)
	}
	for offset, word := range map[string]string{"2h": "ahead of", "-2h": "behind"} {
		out, err := join(offset)
		line := regexp.MustCompile(`(?m)^  FAIL  clock: (2h0m\ds|1h59m5\ds) ` + word + ` the server's: certificates would be expired or not valid yet\. Fix: set the clock, and have it kept right \(timedatectl set-ntp true\)$`)
		if err == nil || !line.MatchString(out) || !strings.Contains(out, "Error: this host cannot become a node yet: clock ") {
			t.Errorf("with a clock %s off: %v\n%s", offset, err, out)
		}
		s.unchanged(t, "after a join with a clock "+offset+" off")
	}
	out, err := join("-2h", "--ignore-preflight", "clock")
	if err == nil || !strings.Contains(out, "behind the server's; set it and try again") {
		t.Errorf("with a clock two hours behind, and nevertheless: %v\n%s", err, out)
	}
	s.unchanged(t, "after a join with a clock two hours behind, and nevertheless")
}

// clockALittleOff joins with a clock four minutes behind, muster's and the kubelet's: certificates are dated back by
// five. The kubelet's is by a drop-in, which muster join would not have otherwise.
func (s *joinStory) clockALittleOff(t *testing.T) {
	const offset = "-4m"
	undo := s.skewKubelet(t, offset, "$NODEADM_KUBELET_ARGS")
	token := s.token()
	s.signed(token, true)
	join := command("--token", "-", "--timeout", "60s", "--ca-cert-hash", s.hash, "--ignore-preflight", "kubelet drop-ins")
	out, err := s.host.RunWith(t.Context(), token+"\n", skewed(offset, join...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("joined:\n%s", out)
	if !regexp.MustCompile(`(?m)^  WARN  clock: (4m\ds|3m5\ds) behind the server's\. Fix: `).MatchString(out) {
		t.Errorf("nothing is said of the clock:\n%s", out)
	}
	s.ready(t)
	if ahead := s.beats(t); ahead > -4*time.Minute || ahead < -5*time.Minute {
		t.Errorf("the kubelet's clock is %s ahead", ahead)
	}
	s.pod("on-late-host")
	s.adminKubeconfig(t)
	if out, err := s.host.Run(t.Context(), skewed(offset, host.BinDir+"/muster", "leave", "--kubeconfig", "/root/admin.conf")...); err != nil {
		t.Fatal(err, out)
	}
	s.must("rm", "/root/admin.conf")
	undo()
	s.unchanged(t, "after a join with a clock a little off, and leave")
}

// wrongClock shows what kubeadm makes of a clock that is wrong, muster's clusters being no others to it than
// upstream's. It looks at no clock. Two hours behind, the certificate of the API server is not valid yet: kubeadm asks
// again, every five seconds, until its time for discovery is up (five minutes if nobody says otherwise), and then
// quotes the TLS library. Two hours ahead nothing keeps it from joining: a kubelet's certificate is good for days, so
// the node turns Ready, and all that it dates is in the future.
func (k kubeadmStory) wrongClock(t *testing.T) {
	k.installSkew(t)
	token := k.token()
	k.signed(token, true)
	k.refused(t, token, k.hash, "certificate has expired or is not yet valid", skewed("-2h")...)

	undo := k.skewKubelet(t, "2h", "$KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS")
	out, err := k.join(t.Context(), token, k.hash, discoveryPatience, skewed("2h")...)
	if err != nil || !strings.Contains(out, "This node has joined the cluster") {
		t.Fatalf("with a clock two hours ahead: %v\n%s", err, out)
	}
	k.ready()
	if ahead := k.beats(t).Round(time.Hour); ahead != 2*time.Hour {
		t.Errorf("the kubelet's clock is %s ahead", ahead)
	}
	k.reset()
	undo()
}
