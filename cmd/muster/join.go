// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/configsource"
	"muster.dev/muster/internal/discovery"
	"muster.dev/muster/internal/host"
	"muster.dev/muster/internal/hostnode"
	"muster.dev/muster/internal/imds"
	"muster.dev/muster/internal/nodeconfig"
	"muster.dev/muster/internal/preflight"
	"muster.dev/muster/internal/render"
	"muster.dev/muster/internal/systemd"
	"muster.dev/muster/internal/token"
)

type joinCommand struct {
	*options
	endpoint        string
	token           string
	tokenFile       string
	hashes          []string
	skipCA          bool
	file            string
	nodeName        string
	nodeIP          string
	sources         []string
	lenient         bool
	ignorePreflight []string
	skipKubeProxy   bool
	dryRun          bool
	timeout         time.Duration
	format          string
}

func newJoinCommand(o *options) *cobra.Command {
	j := &joinCommand{options: o}
	cmd := &cobra.Command{
		Use:   "join [HOST:PORT]",
		Short: "Make this host, which systemd runs, a node of a cluster",
		Long: `Make this host, which systemd runs, a node of the cluster whose API server is at HOST:PORT, and wait until it is Ready.

It is looked whether the host can be a node; the cluster is found by a token and the hash of its authority; what a node needs is
installed and started; and each step of the TLS bootstrap is told as it happens. Run again after an interruption, or when something
is missing, it takes up where it was. muster leave undoes all of it.

A token on a command line can be read by every user of the host for as long as the command runs (/proc/PID/cmdline), and stays in
the shell's history. --token-file, or --token - for standard input, keep it to those who have it.

Flags have kubeadm's names, too: --discovery-token, --discovery-token-ca-cert-hash, --discovery-token-unsafe-skip-ca-verification,
--discovery-file. docs/join.md tells all of it.`,
		Example: `  # As muster token create --print-join-command prints it
  muster join 192.168.64.2:443 --token abcdef.0123456789abcdef --ca-cert-hash sha256:…

  # The token from a file; labels and more from a NodeConfig
  muster join 192.168.64.2:443 --token-file token --ca-cert-hash sha256:… --config-source node.yaml

  # What it would do
  muster join 192.168.64.2:443 --token-file token --ca-cert-hash sha256:… --dry-run`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				j.endpoint = args[0]
			}
			return j.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&j.token, "token", "", "bootstrap token; - reads it from standard input")
	flags.StringVar(&j.tokenFile, "token-file", "", "file that holds the bootstrap token")
	flags.StringArrayVar(&j.hashes, "ca-cert-hash", nil, "hash of the public key of the cluster's authority, sha256:…; repeatable, any of them is enough")
	flags.BoolVar(&j.skipCA, "discovery-token-unsafe-skip-ca-verification", false, "believe any cluster that knows the token: whoever else knows it can pass for the cluster")
	flags.StringVar(&j.file, "discovery-file", "", "kubeconfig, a file or an https URL, that says where the cluster is and whom to trust, instead of a hash")
	flags.StringVar(&j.nodeName, "node-name", "", "name of the node (default: that of the host)")
	flags.StringVar(&j.nodeIP, "node-ip", "", "address of the node (default: the one that leads to the API server)")
	flags.StringArrayVarP(&j.sources, "config-source", "c", nil, "more of what the node is told, NodeConfig: imds://user-data, file://PATH or PATH; repeatable. Flags win")
	flags.BoolVar(&j.lenient, "lenient", false, "only warn about fields of a NodeConfig that are not known")
	flags.StringSliceVar(&j.ignorePreflight, "ignore-preflight", nil, "go on though this check fails, by its name, or all; repeatable")
	flags.BoolVar(&j.skipKubeProxy, "skip-kube-proxy", false, "leave kube-proxy to the cluster, for one that runs it as a DaemonSet (as kubeadm's do) or has something else in its place")
	flags.BoolVar(&j.dryRun, "dry-run", false, "print what would be written and started, and change nothing")
	flags.DurationVar(&j.timeout, "timeout", 5*time.Minute, "how long to wait until the node is Ready")
	addFormatFlag(cmd, &j.format, formatTable, formatTable, formatJSON, formatYAML)
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(kubeadmName(name))
	})
	return cmd
}

// kubeadmName is ours for a flag of kubeadm's.
func kubeadmName(name string) string {
	switch name {
	case "discovery-token", "tls-bootstrap-token":
		return "token"
	case "discovery-token-ca-cert-hash":
		return "ca-cert-hash"
	case "ignore-preflight-errors":
		return "ignore-preflight"
	}
	return name
}

func (j *joinCommand) run(ctx context.Context) error {
	if err := checkOutput(j.format, formatTable, formatJSON, formatYAML); err != nil {
		return err
	}
	request, err := j.request(ctx)
	if err != nil {
		return err
	}
	h, err := newHost(j.options)
	if err != nil {
		return err
	}
	if j.dryRun {
		plan, err := h.Plan(ctx, request)
		if err != nil {
			return err
		}
		return j.printPlan(plan)
	}
	report, err := h.Join(ctx, request)
	if err != nil {
		return err
	}
	if j.format != formatTable {
		return printData(j.out, j.format, report)
	}
	fmt.Fprintf(j.err, "\nNode %s has joined %s in %.1f s, of which muster itself took %.2f s.\n", report.NodeName, report.Endpoint, report.Seconds, report.OwnSeconds)
	return nil
}

// request puts together what flags and configuration say; flags win.
func (j *joinCommand) request(ctx context.Context) (hostnode.JoinRequest, error) {
	spec, err := j.configuration(ctx)
	if err != nil {
		return hostnode.JoinRequest{}, err
	}
	j.fillIn(spec)
	t, err := j.readToken()
	if err != nil {
		return hostnode.JoinRequest{}, err
	}
	if j.endpoint == "" && j.file == "" {
		return hostnode.JoinRequest{}, usageError{errors.New("say where the cluster is: muster join HOST:PORT, or --discovery-file")}
	}
	if t.IsZero() && j.file == "" && !joinedAlready() {
		return hostnode.JoinRequest{}, usageError{errors.New("give the token: --token-file FILE, or --token - to read it from standard input (muster token create makes one)")}
	}
	r := hostnode.JoinRequest{
		Endpoint: j.endpoint, Token: t, Pins: j.hashes, Spec: spec, NodeName: j.nodeName, Timeout: j.timeout,
		SkipKubeProxy: j.skipKubeProxy, Preflight: j.preflight,
		Discover: func(ctx context.Context) (hostnode.Found, error) {
			found, err := discovery.Discover(ctx, discovery.Config{
				Endpoint: j.endpoint, Token: t, CACertHashes: j.hashes, UnsafeSkipCAVerification: j.skipCA, File: j.file, Timeout: j.timeout,
				Progress: func(text string) { fmt.Fprintf(j.err, "         discovery      %s\n", text) },
			})
			return hostnode.Found{Endpoint: found.Endpoint, CA: found.CA, How: found.How}, err
		},
	}
	if r.NodeName == "" {
		name, err := os.Hostname()
		if err != nil {
			return hostnode.JoinRequest{}, fmt.Errorf("reading this host's name: %w; say which with --node-name", err)
		}
		r.NodeName = strings.ToLower(strings.TrimSpace(name))
	}
	if j.nodeIP != "" {
		if r.NodeIP, err = netip.ParseAddr(j.nodeIP); err != nil {
			return hostnode.JoinRequest{}, usageError{fmt.Errorf("--node-ip %q is no address", j.nodeIP)}
		}
	}
	return r, nil
}

// fillIn takes from configuration what no flag says.
func (j *joinCommand) fillIn(spec nodeconfig.Spec) {
	join := spec.Join
	if j.token == "" && j.tokenFile == "" {
		j.token, j.tokenFile = join.Token, join.TokenFile
	}
	if len(j.hashes) == 0 {
		j.hashes = join.CACertHashes
	}
	j.skipCA = j.skipCA || join.UnsafeSkipCAVerification
	if j.file == "" {
		j.file = join.DiscoveryFile
	}
	if j.nodeName == "" {
		j.nodeName = join.NodeName
	}
	if j.endpoint == "" {
		j.endpoint = strings.TrimSuffix(strings.TrimPrefix(spec.Cluster.APIServerEndpoint, "https://"), "/")
	}
}

// configuration reads all sources; there need be none.
func (j *joinCommand) configuration(ctx context.Context) (nodeconfig.Spec, error) {
	if len(j.sources) == 0 {
		return nodeconfig.Spec{}, nil
	}
	for _, name := range j.sources {
		if err := configsource.Check(name); err != nil {
			return nodeconfig.Spec{}, usageError{err}
		}
	}
	found, err := configsource.Load(ctx, j.sources, configsource.Readers{UserData: imds.NewClient("").UserData})
	if err != nil {
		return nodeconfig.Spec{}, err
	}
	merged, err := nodeconfig.Read(found.Documents, j.lenient)
	if err != nil {
		return nodeconfig.Spec{}, refused(err)
	}
	for _, warning := range append(found.Doubts, merged.Warnings...) {
		fmt.Fprint(j.err, printableLines("Warning: "+warning+"\n"))
	}
	return merged.Spec, nil
}

// maxTokenFile is far more than a token has.
const maxTokenFile = 1 << 10

// readToken reads the token from where it is said to be. No error shows it.
func (j *joinCommand) readToken() (token.Token, error) {
	var text string
	switch {
	case j.token != "" && j.tokenFile != "":
		return token.Token{}, usageError{errors.New("give the token by --token or by --token-file, not both")}
	case j.token == "-":
		line, err := bufio.NewReader(io.LimitReader(j.in, maxTokenFile)).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return token.Token{}, fmt.Errorf("reading the token from standard input: %w", err)
		}
		text = line
	case j.token != "":
		text = j.token
	case j.tokenFile != "":
		file, err := os.Open(j.tokenFile)
		if err != nil {
			return token.Token{}, fmt.Errorf("reading the token: %w", err)
		}
		defer func() { _ = file.Close() }()
		raw, err := io.ReadAll(io.LimitReader(file, maxTokenFile))
		if err != nil {
			return token.Token{}, fmt.Errorf("reading the token: %w", err)
		}
		text = string(raw)
	default:
		return token.Token{}, nil
	}
	t, err := token.Parse(strings.TrimSpace(text))
	if err != nil {
		return token.Token{}, usageError{err}
	}
	return t, nil
}

func joinedAlready() bool {
	_, err := hostnode.ReadLedger("")
	return err == nil
}

// preflight looks at the host, prints what is doubtful with what to do about it, and refuses what cannot work.
func (j *joinCommand) preflight(ctx context.Context) (string, error) {
	programs, err := programsDir()
	if err != nil {
		return "", err
	}
	results := preflight.Run(ctx, preflight.System(preflight.Config{Endpoint: serverURL(j.endpoint), NodeName: j.nodeName, BinDir: programs}))
	if j.endpoint == "" { // a file will say where
		results = slices.DeleteFunc(results, func(r preflight.Result) bool { return r.Name == "endpoint" || r.Name == "clock" })
	}
	var failed []string
	warnings := 0
	for _, r := range results {
		// A server that does not answer yet is waited for by what comes next.
		ignored := r.Name == "endpoint" || slices.Contains(j.ignorePreflight, r.Name) || slices.Contains(j.ignorePreflight, "all")
		switch {
		case r.Status == preflight.OK:
			continue
		case r.Status == preflight.Fail && !ignored:
			failed = append(failed, r.Name)
		default:
			warnings++
		}
		fmt.Fprint(j.err, printableLines(fmt.Sprintf("  %-4s  %s: %s. Fix: %s\n", strings.ToUpper(r.Status), r.Name, r.Saw, r.Fix)))
	}
	if len(failed) > 0 {
		return "", fmt.Errorf("this host cannot become a node yet: %s (above is what to do; --ignore-preflight NAME goes on nevertheless)", strings.Join(failed, ", "))
	}
	return fmt.Sprintf("%d checks, %d warnings", len(results), warnings), nil
}

// serverURL is that of an API server, which may be named so or as HOST:PORT.
func serverURL(endpoint string) string {
	if strings.Contains(endpoint, "://") {
		return endpoint
	}
	return "https://" + endpoint
}

// programsDir is where this program is, and the others beside it.
func programsDir() (string, error) {
	self, err := os.Executable()
	if err == nil {
		self, err = filepath.EvalSymlinks(self)
	}
	if err != nil {
		return "", fmt.Errorf("finding muster's programs: %w", err)
	}
	return filepath.Dir(self), nil
}

// newHost is this host, with the steps shown as they happen.
func newHost(o *options) (*hostnode.Host, error) {
	programs, err := programsDir()
	if err != nil {
		return nil, err
	}
	units, err := systemd.New(systemd.Config{})
	if err != nil {
		return nil, err
	}
	const binDir, cniBinDir = "/usr/local/bin", "/opt/cni/bin"
	layout := render.Layout{BinDir: binDir, CNIBinDir: cniBinDir, Systemd: true}
	return hostnode.New(hostnode.Config{
		Programs: programs, BinDir: binDir, CNIBinDir: cniBinDir, Units: units, Runtime: hostnode.NewCRI(render.ContainerdSocket),
		Render: func(spec nodeconfig.Spec, self hostnode.Self) ([]render.File, error) {
			facts, err := hostFacts()
			if err != nil {
				return nil, err
			}
			layout.ExistingContainerd = !self.OwnContainerd
			files, err := render.Files(spec, render.Instance{PrivateIP: self.IP, PrivateDNSName: self.Name}, facts, layout)
			return files, refused(err)
		},
		Show: func(s hostnode.Step) { showStep(o.err, s) },
	})
}

// showStep prints a line for each step, as muster up does where nothing can move.
func showStep(w io.Writer, s hostnode.Step) {
	text := printable(s.Text)
	switch s.State {
	case hostnode.Waiting:
		text = "… " + text
	case hostnode.Warning:
		text = "Warning: " + text
	}
	fmt.Fprintf(w, "%7.2fs  %-14s %s\n", s.At.Seconds(), s.Name, text)
}

// hostFacts is what this host is.
func hostFacts() (render.Facts, error) {
	own, err := thisMachine()
	if err != nil {
		return render.Facts{}, err
	}
	kernel, err := host.Kernel()
	if err != nil {
		return render.Facts{}, err
	}
	resource, err := host.Capable(unix.CAP_SYS_RESOURCE)
	if err != nil {
		return render.Facts{}, err
	}
	facts := render.Facts{CPUs: own.cpus, MemoryBytes: own.memoryBytes, CgroupVersion: own.cgroupVersion, Kernel: kernel, SysResource: resource}
	// /var/lib/containerd is not there yet; what is on an overlay itself, as in a container, can hold none.
	var disk unix.Statfs_t
	facts.OverlayFS = unix.Statfs("/var/lib", &disk) == nil && disk.Type != unix.OVERLAYFS_SUPER_MAGIC && disk.Type != unix.NFS_SUPER_MAGIC
	const resolved = "/run/systemd/resolve/resolv.conf"
	if raw, err := os.ReadFile("/etc/resolv.conf"); err == nil && strings.Contains(string(raw), "127.0.0.53") && exists(resolved) {
		facts.ResolverConfig = resolved
	}
	return facts, nil
}

// printPlan prints what a join would do.
func (j *joinCommand) printPlan(p hostnode.Plan) error {
	p.Files = slices.Clone(p.Files)
	for i := range p.Files {
		p.Files[i].Content = nodeconfig.WithoutSecrets(p.Files[i].Content)
	}
	if j.format != formatTable {
		return printData(j.out, j.format, struct {
			NodeName string                 `json:"nodeName"`
			NodeIP   string                 `json:"nodeIP"`
			Endpoint string                 `json:"endpoint"`
			Files    []hostnode.PlannedFile `json:"files"`
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
	b.WriteString("\nSteps:\n  systemctl daemon-reload\n")
	for _, service := range slices.Sorted(slices.Values(p.Services)) { // containerd, kube-proxy, kubelet
		fmt.Fprintf(&b, "  systemctl enable %[1]s; systemctl start %[1]s\n", service)
	}
	b.WriteString("  the kubelet asks for its certificates, and registers the node\n\n")
	for _, f := range p.Files {
		if f.Content != "" {
			fmt.Fprintf(&b, "==> %s %s <==\n%s\n", f.Path, f.Mode, strings.TrimSuffix(f.Content, "\n")+"\n")
		}
	}
	_, err := io.WriteString(j.out, printableLines(b.String()))
	return err
}
