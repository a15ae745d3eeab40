// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/iam/authcheck"
	"muster.dev/muster/internal/iam/authenticatorconfig"
	"muster.dev/muster/internal/iam/identity"
	"muster.dev/muster/internal/platform/table"
	"muster.dev/muster/internal/platform/termsafe"
)

// authCommand is what "muster auth" commands have.
type authCommand struct {
	*terminal.Options
	cluster func(*terminal.Options) (*kinds.Client, error)
}

// authCheck holds the flags of "muster auth check".
type authCheck struct {
	manifests, files             []string
	config, mode                 string
	rolePatterns                 bool
	session, principalID         string
	instance, privateDNSName     string
	machineCluster               string
	output                       string
	modeChanged, patternsChanged bool
}

func (c *authCommand) check() *cobra.Command {
	var a authCheck
	cmd := &cobra.Command{
		Use:   "check [ARN]",
		Short: "List every wrong entry and its fix, or show what a principal would become and why",
		Long: `List every entry that is wrong, with the field and what to do about it; or, with the ARN of a role, a session or a user, say what it
would become, by which entry, and why those before it did not match. Entries are access entries, IAMIdentityMapping objects, the
ConfigMap kube-system/aws-auth and mounted files. They come from the cluster, or without one from the files that are named. Of a cluster the
annotations of service accounts that name IAM roles for their pods are checked, too; "muster auth pod" says which identity a pod has.

--instance and --private-dns-name suppose that the session is that of an instance, which nodes must prove, and --machine-cluster for which
cluster it was launched: it is a node of no other. Whose entries these are is told by --cluster or --config. The session names that are
trusted, for hybrid nodes and Fargate, are in the authenticator's configuration: give it by --config.

The exit code is 0 if nothing is wrong, or if the principal is let in; otherwise 1.`,
		Example: `  # Is aws-auth right before it is applied?
  muster auth check -f aws-auth.yaml

  # What would a session of that role become, and why?
  muster auth check arn:aws:sts::111122223333:assumed-role/dev/anna

  # And an instance of a node group?
  muster auth check arn:aws:iam::111122223333:role/nodes --instance i-0123456789abcdef0 --private-dns-name ip-10-0-0-1.eu-west-1.compute.internal

  # As the authenticator is set up, with its mounted file
  muster auth check --config authenticator.yaml --file mappings.yaml -o json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			a.modeChanged, a.patternsChanged = cmd.Flags().Changed("mode"), cmd.Flags().Changed("role-patterns")
			return c.runCheck(cmd.Context(), a, args)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVarP(&a.manifests, "filename", "f", nil, "file with the ConfigMap aws-auth, AccessEntry and IAMIdentityMapping objects, instead of a cluster; - for standard input; repeatable")
	flags.StringArrayVar(&a.files, "file", nil, "mounted file of mappings, instead of a cluster; repeatable")
	flags.StringVar(&a.config, "config", "", "configuration of muster authenticator, whose mode, partition, account, patterns, trusted names of sessions and reserved prefixes count")
	flags.StringVar(&a.mode, "mode", string(identity.ModeAPIAndConfigMap), "authentication mode: CONFIG_MAP, API_AND_CONFIG_MAP or API")
	flags.BoolVar(&a.rolePatterns, "role-patterns", false, "allow sso entries, and * in the names of roles")
	flags.StringVar(&a.session, "session-name", "", "name of the session of a role; default: the instance's id, or one made up")
	flags.StringVar(&a.principalID, "principal-id", "", "id of the principal, AROA… or AIDA…")
	flags.StringVar(&a.instance, "instance", "", "suppose that the session is proven to be this instance's")
	flags.StringVar(&a.privateDNSName, "private-dns-name", "", "private DNS name of that instance")
	flags.StringVar(&a.machineCluster, "machine-cluster", "", "cluster that the instance was launched for; default: none")
	terminal.AddFormatFlag(cmd, &a.output, terminal.FormatTable, terminal.FormatTable, terminal.FormatJSON, terminal.FormatYAML)
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml", "json")
	_ = cmd.MarkFlagFilename("file", "yaml", "yml", "json")
	_ = cmd.MarkFlagFilename("config", "yaml", "yml")
	return cmd
}

func (c *authCommand) runCheck(ctx context.Context, a authCheck, args []string) error {
	if err := terminal.CheckOutput(a.output, terminal.FormatTable, terminal.FormatJSON, terminal.FormatYAML); err != nil {
		return err
	}
	options, err := a.options()
	if err != nil {
		return err
	}
	if options.Cluster = cmp.Or(options.Cluster, c.Cluster); options.Cluster == "" && a.machineCluster != "" {
		return terminal.UsageError{Err: errors.New("--machine-cluster needs --cluster or --config, which say of which cluster the entries are")}
	}
	var principal *identity.Principal
	if len(args) == 1 {
		if principal, err = a.principal(args[0]); err != nil {
			return err
		}
	}
	var entries *authcheck.Entries
	if len(a.manifests)+len(a.files) > 0 {
		options.PrincipalIDs = false // they are filled in when the entries are made
		entries, err = readFiles(c.In, a.manifests, a.files)
	} else {
		entries, err = c.readCluster(ctx)
	}
	if err != nil {
		return err
	}
	out := entries.Check(options, principal)
	for _, note := range entries.Notes {
		fmt.Fprintln(c.Err, termsafe.Line(note))
	}
	switch {
	case a.output != terminal.FormatTable:
		err = terminal.PrintData(c.Out, a.output, out)
	case out.Outcome != nil:
		err = c.printOutcome(a, out)
	default:
		err = c.printProblems(out)
	}
	if err == nil && !out.Good() {
		return terminal.ExitStatus(1)
	}
	return err
}

// options are those of the authenticator's configuration and of the flags.
func (a authCheck) options() (identity.Options, error) {
	var o identity.Options
	if a.config != "" {
		raw, err := os.ReadFile(a.config)
		if err != nil {
			return o, fmt.Errorf("reading the configuration: %w", err)
		}
		configuration, err := authenticatorconfig.Read(raw)
		if err != nil {
			return o, fmt.Errorf("%s: %w", a.config, err)
		}
		o = configuration.Options()
	}
	if a.modeChanged || o.Mode == "" {
		o.Mode = identity.Mode(a.mode)
	}
	if a.patternsChanged {
		o.RolePatterns = a.rolePatterns
	}
	if modes := identity.Modes(); !slices.Contains(modes, o.Mode) {
		return o, terminal.UsageError{Err: fmt.Errorf("unknown authentication mode %q; there are: %v", o.Mode, modes)}
	}
	return o, nil
}

// principal returns the principal that the flags describe.
func (a authCheck) principal(text string) (*identity.Principal, error) {
	supposed := authcheck.Supposed{ARN: text, UserID: a.principalID, SessionName: a.session}
	switch {
	case a.instance != "":
		supposed.Instance = &identity.Instance{ID: a.instance, PrivateDNSName: a.privateDNSName}
		supposed.MachineCluster = a.machineCluster
	case a.privateDNSName != "":
		return nil, terminal.UsageError{Err: errors.New("--private-dns-name needs --instance, the instance that has the name")}
	case a.machineCluster != "":
		return nil, terminal.UsageError{Err: errors.New("--machine-cluster needs --instance, the instance that was launched for it")}
	}
	p, err := supposed.Principal()
	if err != nil {
		return nil, terminal.UsageError{Err: err}
	}
	return p, nil
}

func (c *authCommand) printProblems(out authcheck.Result) error {
	for _, trust := range out.Trusts {
		if _, err := fmt.Fprintf(c.Out, "%s %s: %s.\n", trust.Source, termsafe.Line(trust.Entry), trust); err != nil {
			return err
		}
	}
	if len(out.Problems) == 0 {
		_, err := fmt.Fprintf(c.Out, "Nothing is wrong with %s.\n", terminal.Count(out.Entries, "entry", "entries"))
		return err
	}
	t := table.New(c.Out, "SOURCE", "ENTRY", "FIELD", "USED", "WHAT IS WRONG", "WHAT TO DO")
	for _, p := range out.Problems {
		used := "yes"
		if p.Unused {
			used = "no"
		}
		t.Row(string(p.Source), terminal.OrDash(p.Entry), terminal.OrDash(p.Field), used, "it "+p.Saw, terminal.OrDash(p.Fix))
	}
	return t.Flush()
}

func (c *authCommand) printOutcome(a authCheck, out authcheck.Result) error {
	o := out.Outcome
	var b strings.Builder
	if o.Mapped {
		fmt.Fprintf(&b, "%s becomes the user %s", out.Principal, o.User.Name)
		if len(o.User.Groups) > 0 {
			fmt.Fprintf(&b, "\nin the groups %s", strings.Join(o.User.Groups, ", "))
		}
		fmt.Fprintf(&b, "\nby %s %s.\n", o.Source, o.Entry)
		if o.Trusted {
			b.WriteString("Nothing proves that it is this node: the authenticator's configuration trusts the names of that role's sessions.\n")
		}
	} else {
		fmt.Fprintf(&b, "%s is not let in: %s.\n%s.\n", out.Principal, o.Reason, capital(o.Fix))
		if o.Rule == identity.RulePrincipalID && a.principalID == "" {
			b.WriteString("To suppose that it is that principal, give --principal-id.\n")
		}
	}
	if _, err := c.Out.Write([]byte(termsafe.Lines(b.String()))); err != nil {
		return err
	}
	if len(o.Checks) == 0 {
		return nil
	}
	t := table.New(c.Out, "", "SOURCE", "ENTRY", "OUTCOME", "WHY")
	for i, check := range o.Checks {
		t.Row(fmt.Sprint(i+1), string(check.Source), check.Entry, outcomeWord(check), check.Sentence())
	}
	fmt.Fprintln(c.Out)
	return t.Flush()
}

// outcomeWord is what an entry did with a principal, in a word.
func outcomeWord(c identity.Check) string {
	switch c.Outcome {
	case "Pass":
		return "matches"
	case "Refuse":
		return "refuses"
	default:
		return "is for others"
	}
}

func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
