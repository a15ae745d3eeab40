// SPDX-License-Identifier: Apache-2.0

package csr

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"muster.dev/muster/cmd/muster/console"
	"muster.dev/muster/internal/certificates/csrview"
	"muster.dev/muster/internal/certificates/facts"
	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/policy"
	"muster.dev/muster/internal/certificates/policyconfig"
	"muster.dev/muster/internal/platform/decision"
	"muster.dev/muster/internal/platform/termsafe"
)

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
	console.AddFormatFlag(cmd, &s.output, console.FormatTable, console.FormatTable, console.FormatJSON, console.FormatYAML)
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml", "json", "pem", "csr")
	_ = cmd.MarkFlagFilename("config", "yaml", "yml")
	_ = cmd.MarkFlagFilename("machines", "yaml", "yml")
	return cmd
}

func (c *csrCommand) runSimulation(s simulation, expires bool) error {
	if err := console.CheckOutput(s.output, console.FormatTable, console.FormatJSON, console.FormatYAML); err != nil {
		return err
	}
	if s.file == "" {
		return console.UsageError{Err: errors.New("no request given: name its file with -f; - reads standard input")}
	}
	p, machines, err := s.rules()
	if err != nil {
		return err
	}
	data, err := s.read(c.In)
	if err != nil {
		return err
	}
	csr, err := s.object(data)
	if err != nil {
		return err
	}
	if csr.CreationTimestamp.IsZero() {
		csr.CreationTimestamp = metav1.NewTime(c.now())
	}
	if expires {
		csr.Spec.ExpirationSeconds = &s.expirationSeconds
	}
	request := policy.Read(csr, p)
	now := c.now()
	supposed := csrview.Suppose(policy.Ask(p, request), csrview.Assumptions{Machines: machines, NodeExists: s.nodeExists, AccessRefused: s.noAccess}, now)
	decided := policy.Decide(p, request, supposed, now)
	if s.output == console.FormatTable {
		_, err = io.WriteString(c.Out, termsafe.Lines(decided.String()))
	} else {
		err = console.PrintData(c.Out, s.output, decided)
	}
	if err == nil && decided.Verdict != decision.Approve {
		return console.ExitStatus(1)
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

func (s simulation) read(in io.Reader) ([]byte, error) {
	if s.file != "-" {
		f, err := os.Open(s.file)
		if err != nil {
			return nil, fmt.Errorf("reading the request: %w", err)
		}
		defer func() { _ = f.Close() }() // it was only read
		in = f
	}
	const most = 1 << 20
	data, err := io.ReadAll(io.LimitReader(in, most+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the request: %w", err)
	case len(data) > most:
		return nil, fmt.Errorf("the request in %s has more than 1 MiB", s.file)
	}
	return data, nil
}

// object makes the API object that the API server would hold.
func (s simulation) object(data []byte) (*certificatesv1.CertificateSigningRequest, error) {
	csr := &certificatesv1.CertificateSigningRequest{}
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("-----BEGIN")) {
		csr.Spec.Request = data
	} else if err := yaml.UnmarshalStrict(data, csr); err != nil || csr.Kind != "CertificateSigningRequest" {
		return nil, fmt.Errorf("%s is not a certificate signing request: must be a CertificateSigningRequest in YAML or JSON, or a request in PEM", s.file)
	}
	asked, _ := pki.Parse(csr.Spec.Request) // what cannot be read is the policy's to refuse
	if s.signer != "" {
		csr.Spec.SignerName = longSigner(s.signer)
	}
	if csr.Spec.SignerName == "" {
		csr.Spec.SignerName = pki.SignerKubeletClient
		if len(asked.DNSNames())+len(asked.Addresses()) > 0 {
			csr.Spec.SignerName = pki.SignerKubeletServing
		}
	}
	if s.requester != "" {
		csr.Spec.Username, csr.Spec.Groups = s.requester, append(slices.Clone(s.groups), "system:authenticated")
	}
	if csr.Spec.Username == "" {
		csr.Spec.Username, csr.Spec.Groups = asked.CommonName(), []string{"system:nodes", "system:authenticated"}
	}
	if len(s.usages) > 0 {
		csr.Spec.Usages = nil
		for _, u := range s.usages {
			csr.Spec.Usages = append(csr.Spec.Usages, certificatesv1.KeyUsage(u))
		}
	}
	if len(csr.Spec.Usages) == 0 {
		if profile, ok := pki.ProfileFor(csr.Spec.SignerName); ok {
			for _, u := range profile.Usages {
				csr.Spec.Usages = append(csr.Spec.Usages, certificatesv1.KeyUsage(u))
			}
		}
	}
	csr.Status = certificatesv1.CertificateSigningRequestStatus{} // it is judged anew
	if s.approved {
		csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
			Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: policy.ReasonApprovedByOperator,
		}}
	}
	return csr, nil
}

// longSigner takes the short names that "muster csr list" prints, too.
func longSigner(name string) string {
	for _, long := range []string{pki.SignerKubeletClient, pki.SignerKubeletServing} {
		if name == ShortSigner(long) {
			return long
		}
	}
	if !strings.Contains(name, "/") {
		return "kubernetes.io/" + name
	}
	return name
}
