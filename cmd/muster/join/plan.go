// SPDX-License-Identifier: Apache-2.0

package join

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/node/hostjoin"
	"muster.dev/muster/internal/node/nodeconfig"
	"muster.dev/muster/internal/platform/termsafe"
)

// printPlan prints what a join would do.
func (j *joinCommand) printPlan(p hostjoin.Plan) error {
	p.Files = slices.Clone(p.Files)
	for i := range p.Files {
		p.Files[i].Content = nodeconfig.WithoutSecrets(p.Files[i].Content)
	}
	if j.format != terminal.FormatTable {
		return terminal.PrintData(j.Out, j.format, struct {
			NodeName string                 `json:"nodeName"`
			NodeIP   string                 `json:"nodeIP"`
			Endpoint string                 `json:"endpoint"`
			Files    []hostjoin.PlannedFile `json:"files"`
			Services []string               `json:"services"`
		}{p.Self.Name, p.Self.IP.String(), p.Endpoint, p.Files, p.Services})
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Node %s (%s) of %s.\n\nFiles:\n", p.Self.Name, p.Self.IP, p.Endpoint)
	for _, f := range p.Files {
		switch {
		case f.LinkTo != "":
			fmt.Fprintf(&b, "  %s -> %s\n", f.Path, f.LinkTo)
		case f.CopyOf != "":
			fmt.Fprintf(&b, "  %s %s, a copy of %s\n", f.Path, f.Mode, f.CopyOf)
		default:
			fmt.Fprintf(&b, "  %s %s\n", f.Path, f.Mode)
		}
	}
	b.WriteString("\nSteps:\n")
	for _, service := range slices.Sorted(slices.Values(p.Services)) { // containerd, kube-proxy, kubelet
		fmt.Fprintf(&b, "  systemctl start %[1]s; systemctl enable %[1]s\n", service)
	}
	b.WriteString("  systemctl daemon-reload\n")
	b.WriteString("  the kubelet asks for its certificates, and registers the node\n\n")
	for _, f := range p.Files {
		if f.Content != "" {
			fmt.Fprintf(&b, "==> %s %s <==\n%s\n", f.Path, f.Mode, strings.TrimSuffix(f.Content, "\n")+"\n")
		}
	}
	_, err := io.WriteString(j.Out, termsafe.Lines(b.String()))
	return err
}
