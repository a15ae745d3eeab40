// SPDX-License-Identifier: Apache-2.0

package iam

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster.dev/muster/cmd/muster/console"
	"muster.dev/muster/internal/platform/shellquote"
	"muster.dev/muster/internal/platform/statedir"
)

// credentialPatience is how long `muster iam env` waits for the first user, which the service makes when the management plane is ready.
const credentialPatience = 20 * time.Second

// NewCommand returns "muster iam".
func NewCommand(o *console.Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "iam",
		Short: "Set the AWS CLI and SDKs up for muster's own IAM and STS",
		Long: `Muster has an IAM and STS of its own, which the AWS CLI and SDKs speak to as to AWS. Users, access keys, roles and instance profiles are
made with "aws iam ..."; "muster iam env" says to the tools where it is and who you are.`,
		Args: console.UsageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newIAMEnvCommand(o))
	return cmd
}

func newIAMEnvCommand(o *console.Options) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "env",
		Short: "Print the environment by which AWS's tools find muster's IAM, as its first user",
		Long: `Print the environment by which AWS's tools find muster's IAM and STS, as the first user of its account, "admin".

No secret is printed: the variables name files that only you can read. What would win over them (AWS_PROFILE, AWS_ACCESS_KEY_ID and the
like) is unset. While it is in force, tools talk to muster for every AWS service, so that nothing reaches AWS by mistake.`,
		Example: `  eval "$(muster iam env)"
  aws sts get-caller-identity
  aws iam create-user --user-name alice

  muster iam env -o json`,
		Args: console.UsageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if format != "shell" && format != console.FormatJSON {
				return console.UsageError{Err: fmt.Errorf("unknown output format %q; there are: shell, json", format)}
			}
			dir, err := o.OpenExisting()
			if err != nil {
				return err
			}
			if err := waitForFirstUser(cmd.Context(), dir, credentialPatience); err != nil {
				return err
			}
			environment, err := iamEnvironment(dir)
			if err != nil {
				return err
			}
			if format == console.FormatJSON {
				return console.PrintData(o.Out, console.FormatJSON, environment)
			}
			_, err = fmt.Fprint(o.Out, shellEnvironment(environment))
			return err
		},
	}
	cmd.Flags().StringVarP(&format, "output", "o", "shell", "shell or json")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"shell", console.FormatJSON}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// overriding win over files of credentials and configuration, or send a part of the requests elsewhere.
var overriding = []string{
	"AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ROLE_ARN", "AWS_WEB_IDENTITY_TOKEN_FILE",
	"AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_ENDPOINT_URL_STS", "AWS_ENDPOINT_URL_IAM", "AWS_ENDPOINT_URL_EKS",
	"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "AWS_USE_FIPS_ENDPOINT", "AWS_USE_DUALSTACK_ENDPOINT",
}

// environment has its variables in the order in which they are printed.
type environment struct {
	Credentials string `json:"AWS_SHARED_CREDENTIALS_FILE"`
	Config      string `json:"AWS_CONFIG_FILE"`
	Authority   string `json:"AWS_CA_BUNDLE"`
	Endpoint    string `json:"AWS_ENDPOINT_URL"`
	Region      string `json:"AWS_REGION"`
	Default     string `json:"AWS_DEFAULT_REGION"`
}

func iamEnvironment(dir statedir.Dir) (environment, error) {
	raw, err := os.ReadFile(dir.IAMConfig())
	if err != nil {
		return environment{}, fmt.Errorf("reading the address of the identity service: %w", err)
	}
	e := environment{
		Credentials: dir.IAMCredentials(), Config: dir.IAMConfig(), Region: setting(string(raw), "region"), Default: setting(string(raw), "region"),
		Endpoint: setting(string(raw), "endpoint_url"), Authority: setting(string(raw), "ca_bundle"),
	}
	if e.Endpoint == "" || e.Authority == "" {
		return environment{}, fmt.Errorf("%s does not have the address of the identity service: `muster up` writes it again", dir.IAMConfig())
	}
	return e, nil
}

// setting is a value of the one profile in the file that the service writes.
func setting(text, key string) string {
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(line, "="); ok && strings.TrimSpace(name) == key {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func shellEnvironment(e environment) string {
	var b strings.Builder
	fmt.Fprintf(&b, "unset %s\n", strings.Join(overriding, " "))
	for _, v := range [][2]string{
		{"AWS_SHARED_CREDENTIALS_FILE", e.Credentials},
		{"AWS_CONFIG_FILE", e.Config},
		{"AWS_CA_BUNDLE", e.Authority},
		{"AWS_ENDPOINT_URL", e.Endpoint},
		{"AWS_REGION", e.Region},
		{"AWS_DEFAULT_REGION", e.Default},
	} {
		fmt.Fprintf(&b, "export %s=%s\n", v[0], shellquote.Quote(v[1]))
	}
	return b.String()
}

// waitForFirstUser waits until the service has written who the first user is, which takes a moment when the cluster is new.
func waitForFirstUser(ctx context.Context, dir statedir.Dir, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		_, configured := os.Stat(dir.IAMConfig())
		_, credentials := os.Stat(dir.IAMCredentials())
		switch {
		case configured == nil && credentials == nil:
			return nil
		case configured == nil && errors.Is(credentials, fs.ErrNotExist): // the configuration comes last
			return fmt.Errorf("%s is gone, and it was written once: use a key that you have, or have it made anew as docs/iam.md says", dir.IAMCredentials())
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the identity service has not been there yet in %s: `muster up` starts it, `muster status` shows how it is", dir)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
