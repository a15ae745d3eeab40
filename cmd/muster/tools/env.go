// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/plane/portplan"
	"muster.dev/muster/internal/platform/shellquote"
	"muster.dev/muster/internal/platform/statedir"
	"muster.dev/muster/internal/platform/trustfile"
)

// credentialPatience is how long `muster env` waits for the first user, which the service makes when the management
// plane is ready.
const credentialPatience = 20 * time.Second

const formatShell = "shell"

// NewEnvCommand returns "muster env".
func NewEnvCommand(o *terminal.Options) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "env",
		Short: "Print the environment by which AWS's tools find the account, as its first user",
		Long: `Print the environment by which AWS's tools find the account, as its first user, "admin": the AWS CLI and SDKs, Terraform, eksctl,
Cluster API's AWS provider.

No secret is printed: the variables name files that only you can read. What would win over them (AWS_PROFILE, AWS_ACCESS_KEY_ID and the
like) is unset. While it is in force, tools talk to muster for every AWS service, so that nothing reaches AWS by mistake.

MUSTER_REGISTRY is where the account's image registry answers on this host: docker login $MUSTER_REGISTRY.

SSL_CERT_FILE is for programs that read no AWS_CA_BUNDLE, such as Terraform's tls provider. The file that it names has the system's authorities
and the account's, or those of your own SSL_CERT_FILE and the account's.`,
		Example: `  eval "$(muster env)"
  aws sts get-caller-identity
  aws eks list-clusters
  terraform apply

  muster env -o json`,
		Args: terminal.UsageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := terminal.CheckOutput(format, formatShell, terminal.FormatJSON, terminal.FormatYAML); err != nil {
				return err
			}
			dir, err := o.OpenExisting()
			if err != nil {
				return err
			}
			if err := waitForFirstUser(cmd.Context(), dir, credentialPatience); err != nil {
				return err
			}
			environment, err := readEnvironment(dir)
			if err != nil {
				return err
			}
			if format != formatShell {
				return terminal.PrintData(o.Out, format, environment)
			}
			_, err = fmt.Fprint(o.Out, shellEnvironment(environment))
			return err
		},
	}
	terminal.AddFormatFlag(cmd, &format, formatShell, formatShell, terminal.FormatJSON, terminal.FormatYAML)
	return cmd
}

// overriding win over files of credentials and configuration, or send a part of the requests elsewhere.
var overriding = []string{
	"AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ROLE_ARN", "AWS_WEB_IDENTITY_TOKEN_FILE",
	"AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_ENDPOINT_URL_STS", "AWS_ENDPOINT_URL_IAM", "AWS_ENDPOINT_URL_EKS", "AWS_ENDPOINT_URL_ECR",
	"AWS_ENDPOINT_URL_EKS_AUTH", "AWS_ENDPOINT_URL_EC2", "AWS_ENDPOINT_URL_AUTO_SCALING", "AWS_ENDPOINT_URL_SSM", "AWS_ENDPOINT_URL_KMS",
	"AWS_ENDPOINT_URL_CLOUDWATCH_LOGS", "AWS_ENDPOINT_URL_CLOUDFORMATION", "AWS_ENDPOINT_URL_CLOUDTRAIL", "AWS_ENDPOINT_URL_ELASTIC_LOAD_BALANCING",
	"AWS_ENDPOINT_URL_ELASTIC_LOAD_BALANCING_V2", "AWS_ENDPOINT_URL_SQS", "AWS_ENDPOINT_URL_EVENTBRIDGE", "AWS_ENDPOINT_URL_RESOURCE_GROUPS_TAGGING_API",
	"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL_SECRETS_MANAGER",
	// eksctl's own: it reads them before AWS_ENDPOINT_URL (its pkg/eks/services_v2.go).
	"AWS_STS_ENDPOINT", "AWS_IAM_ENDPOINT", "AWS_EKS_ENDPOINT", "AWS_EC2_ENDPOINT", "AWS_CLOUDFORMATION_ENDPOINT", "AWS_CLOUDTRAIL_ENDPOINT", "AWS_ELB_ENDPOINT",
	"AWS_ELBV2_ENDPOINT",
	"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "AWS_USE_FIPS_ENDPOINT", "AWS_USE_DUALSTACK_ENDPOINT",
}

// environment has its variables in the order in which they are printed.
type environment struct {
	Credentials string `json:"AWS_SHARED_CREDENTIALS_FILE"`
	Config      string `json:"AWS_CONFIG_FILE"`
	Authority   string `json:"AWS_CA_BUNDLE"`
	Trust       string `json:"SSL_CERT_FILE"`
	Endpoint    string `json:"AWS_ENDPOINT_URL"`
	Region      string `json:"AWS_REGION"`
	Default     string `json:"AWS_DEFAULT_REGION"`
	Registry    string `json:"MUSTER_REGISTRY"`
}

// readEnvironment returns the environment, and writes the file of authorities that it names.
func readEnvironment(dir statedir.Dir) (environment, error) {
	raw, err := os.ReadFile(dir.IAMConfig())
	if err != nil {
		return environment{}, fmt.Errorf("reading the account's address: %w", err)
	}
	e := environment{
		Credentials: dir.IAMCredentials(), Config: dir.IAMConfig(), Region: setting(string(raw), "region"), Default: setting(string(raw), "region"),
		Endpoint: setting(string(raw), "endpoint_url"), Authority: setting(string(raw), "ca_bundle"), Trust: dir.IAMTrust(),
	}
	if e.Endpoint == "" || e.Authority == "" {
		return environment{}, fmt.Errorf("%s does not have the account's address: `muster up` writes it again", dir.IAMConfig())
	}
	var ports portplan.AccountPorts
	if err := portplan.Read(dir.Ports(), &ports); err != nil {
		return environment{}, err
	}
	e.Registry = ports.Places().Registry.Reach.String()
	authority, err := os.ReadFile(e.Authority)
	if err != nil {
		return environment{}, fmt.Errorf("reading the account's authority: %w", err)
	}
	if err := trustfile.Write(e.Trust, os.Getenv(trustfile.Variable), authority); err != nil {
		return environment{}, err
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
		{trustfile.Variable, e.Trust},
		{"AWS_ENDPOINT_URL", e.Endpoint},
		{"AWS_REGION", e.Region},
		{"AWS_DEFAULT_REGION", e.Default},
		{"MUSTER_REGISTRY", e.Registry},
	} {
		fmt.Fprintf(&b, "export %s=%s\n", v[0], shellquote.Quote(v[1]))
	}
	return b.String()
}

// waitForFirstUser waits until the service has written who the first user is, which takes a moment when the cluster is
// new.
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
			return fmt.Errorf("the account does not answer yet in %s: `muster up` starts it, `muster status` shows how it is", dir)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
