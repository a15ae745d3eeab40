// SPDX-License-Identifier: Apache-2.0

package csr

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/certificates/csrview"
	"muster.dev/muster/internal/certificates/facts"
	"muster.dev/muster/internal/certificates/policy"
	"muster.dev/muster/internal/certificates/policyconfig"
	"muster.dev/muster/internal/platform/decision"
	"muster.dev/muster/internal/platform/termsafe"
)

// maxRequest is the most bytes of a request that are read.
const maxRequest = 1 << 20

// simulation holds the flags of "muster csr simulate".
type simulation struct {
	file, config, machines string
	signer, requester      string
	groups, usages         []string
	expirationSeconds      int32
	approved               bool
	nodeExists, noAccess   bool
	output                 string
}

func (c *csrCommand) simulate() *cobra.Command {
	var s simulation
	cmd := &cobra.Command{
		Use:   "simulate -f FILE",
		Short: "Show what the policy would decide about a request, without a cluster",
		Long: `Show what the policy would decide about a request, without a cluster. The request is a CertificateSigningRequest in YAML or JSON, as
kubectl get csr -o yaml prints it, or bare PEM. Flags name the requester where the request does not have it as the API server writes
it; the default is a node that asks for its own certificate. Machines come from --machines, or from the files that the policy file names as
static sources. The rest is assumed: a new key, a node that does not exist yet, and RBAC that allows the request.

The exit code is 0 if it would be approved, otherwise 1.`,
		Example: `  # Why did that node get no certificate?
  kubectl get csr csr-8x2vq -o yaml | muster csr simulate -f - --machines machines.yaml

  # A policy file before it is installed
  muster csr simulate -f request.pem --config policy.yaml

  # A new machine with a kubeadm token
  muster csr simulate -f request.pem --config policy.yaml --requester system:bootstrap:abcdef \
    --group system:bootstrappers --group system:bootstrappers:kubeadm:default-node-token`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.runSimulation(s, cmd.Flags().Changed("expiration-seconds"))
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&s.file, "filename", "f", "", "file with the request; - for standard input (required)")
	flags.StringVar(&s.config, "config", "", "policy file of the certificate controller; default: the default policy")
	flags.StringVar(&s.machines, "machines", "", "file with the machines that there are, as for the static inventory")
	flags.StringVar(&s.signer, "signer", "", "name of the signer; default: kubelet-serving if the request has names, else kubelet-client")
	flags.StringVar(&s.requester, "requester", "", "user who asks; default: the node that the common name says")
	flags.StringSliceVar(&s.groups, "group", nil, "group of the user; repeatable; default: a node's")
	flags.StringSliceVar(&s.usages, "usage", nil, `usage asked for, such as "server auth"; repeatable; default: the signer's`)
	flags.Int32Var(&s.expirationSeconds, "expiration-seconds", 0, "lifetime asked for")
	flags.BoolVar(&s.approved, "approved", false, "assume that a person has approved it")
	flags.BoolVar(&s.nodeExists, "node-exists", false, "assume that a Node of the name exists")
	flags.BoolVar(&s.noAccess, "no-access", false, "assume that RBAC does not allow the requester to ask")
	terminal.AddFormatFlag(cmd, &s.output, terminal.FormatTable, terminal.FormatTable, terminal.FormatJSON, terminal.FormatYAML)
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml", "json", "pem", "csr")
	_ = cmd.MarkFlagFilename("config", "yaml", "yml")
	_ = cmd.MarkFlagFilename("machines", "yaml", "yml")
	return cmd
}

func (c *csrCommand) runSimulation(s simulation, expires bool) error {
	if err := terminal.CheckOutput(s.output, terminal.FormatTable, terminal.FormatJSON, terminal.FormatYAML); err != nil {
		return err
	}
	if s.file == "" {
		return terminal.UsageError{Err: errors.New("no request given: name its file with -f; - reads standard input")}
	}
	p, machines, err := s.rules()
	if err != nil {
		return err
	}
	data, err := terminal.ReadInput(c.In, s.file, "the request", maxRequest)
	if err != nil {
		return err
	}
	overrides := csrview.Overrides{Signer: s.signer, Username: s.requester, Groups: s.groups, Usages: s.usages, Approved: s.approved}
	if expires {
		overrides.ExpirationSeconds = &s.expirationSeconds
	}
	now := c.now()
	csr, err := csrview.ReadRequest(data, overrides, now)
	if err != nil {
		return fmt.Errorf("%s %w", s.file, err)
	}
	decided := csrview.Simulate(p, csr, csrview.Assumptions{Machines: machines, NodeExists: s.nodeExists, AccessRefused: s.noAccess}, now)
	if s.output == terminal.FormatTable {
		_, err = io.WriteString(c.Out, termsafe.Lines(decided.String()))
	} else {
		err = terminal.PrintData(c.Out, s.output, decided)
	}
	if err == nil && decided.Verdict != decision.Approve {
		return terminal.ExitStatus(1)
	}
	return err
}

// rules are the policy and the machines that it would know.
func (s simulation) rules() (policy.Policy, []policy.Machine, error) {
	var p policy.Policy
	var files []string
	if s.config != "" {
		raw, err := os.ReadFile(s.config)
		if err != nil {
			return p, nil, fmt.Errorf("reading the policy file: %w", err)
		}
		config, err := policyconfig.Read(raw)
		if err != nil {
			return p, nil, fmt.Errorf("%s: %w", s.config, err)
		}
		p = config.Policy()
		for _, source := range config.Inventory.Sources {
			if source.Static != nil && source.Static.File != "" {
				files = append(files, source.Static.File)
			}
		}
	}
	if s.machines != "" {
		files = []string{s.machines}
	}
	var machines []policy.Machine
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return p, nil, fmt.Errorf("reading the machines: %w", err)
		}
		found, err := facts.ReadList(raw)
		if err != nil {
			return p, nil, fmt.Errorf("%s: %w", file, err)
		}
		machines = append(machines, found...)
	}
	if machines == nil && len(files) > 0 {
		machines = []policy.Machine{} // an empty inventory is one
	}
	return p, machines, nil
}
