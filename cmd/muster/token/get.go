// SPDX-License-Identifier: Apache-2.0

package token

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/iam/ekstoken"
	"muster.dev/muster/internal/plane/clusterconfig"
	"muster.dev/muster/internal/platform/statedir"
)

// loginTimeout is how long credentials may take to be got: a role to be assumed, instance metadata that does not answer
// at once.
const loginTimeout = time.Minute

// credentialCommand answers kubectl and kubelets, by whichever of its names it was called.
type credentialCommand struct {
	out, err  io.Writer
	request   ekstoken.Request
	cache     bool
	tokenOnly bool
	now       func() time.Time
}

func newTokenGetCommand(o *terminal.Options) *cobra.Command {
	c := &credentialCommand{out: o.Out, err: o.Err, now: time.Now}
	cmd := &cobra.Command{
		Use:   "get",
		Short: "Print a token of an IAM identity, for kubectl: a credential plugin",
		Long: `Print a token by which an IAM identity comes into a cluster, as kubectl expects it of a credential plugin (muster kubeconfig --iam
writes a context that calls it). It is what aws eks get-token prints.

The identity is that of your AWS environment or profile. Where none is set, it is the administrator of this state directory's clusters.`,
		Example: `  muster token get --cluster muster
  AWS_PROFILE=dev muster token get --cluster muster --role-arn arn:aws:iam::000000000000:role/developers --cache`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.local(o); err != nil {
				return err
			}
			return c.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&c.request.Cluster, "cluster", "", "name of the cluster; default: that of the state directory")
	flags.StringVar(&c.request.RoleARN, "role-arn", "", "role to assume first")
	flags.StringVar(&c.request.SessionName, "session-name", "", "name of that role's session")
	flags.StringVar(&c.request.ExternalID, "external-id", "", "external id that the role's trust policy asks for")
	flags.StringVar(&c.request.Region, "region", "", "region; default: that of the AWS configuration")
	flags.BoolVar(&c.cache, "cache", false, "keep tokens in ~/.kube/cache/muster until they end")
	flags.BoolVar(&c.tokenOnly, "token-only", false, "print the token alone")
	return cmd
}

// local fills in what a state directory knows: the name of its cluster, and its administrator.
func (c *credentialCommand) local(o *terminal.Options) error {
	dir, err := o.Open()
	if err != nil {
		if c.request.Cluster != "" && environmentHasIdentity(os.Environ()) {
			return nil
		}
		return err
	}
	if c.request.Cluster == "" {
		if !dir.Exists() {
			return terminal.UsageError{Err: fmt.Errorf("--cluster: name the cluster; there is none in %s", dir)}
		}
		cluster, err := o.OpenCluster()
		if err != nil {
			return err
		}
		saved, err := clusterconfig.Read(cluster.Record())
		if err != nil {
			return err
		}
		c.request.Cluster = saved.Cluster.Spec.Name
	}
	if !environmentHasIdentity(os.Environ()) && terminal.Exists(dir.IAMCredentials()) {
		c.request.Files = iamFiles(dir)
	}
	return nil
}

func iamFiles(dir statedir.Dir) *ekstoken.Files {
	return &ekstoken.Files{Config: dir.IAMConfig(), Credentials: dir.IAMCredentials()}
}

// environmentHasIdentity reports whether the environment configures an identity for AWS's programs.
func environmentHasIdentity(environ []string) bool {
	for _, name := range []string{
		"AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_WEB_IDENTITY_TOKEN_FILE",
		"AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
	} {
		if slices.ContainsFunc(environ, func(v string) bool { return len(v) > len(name)+1 && v[:len(name)+1] == name+"=" }) {
			return true
		}
	}
	return false
}

func (c *credentialCommand) run(ctx context.Context) error {
	version, err := ekstoken.Version(os.Getenv(ekstoken.InfoVariable))
	if err != nil {
		return err
	}
	token, err := c.token(ctx)
	if err != nil {
		return err
	}
	if c.tokenOnly {
		_, err := fmt.Fprintln(c.out, token.Reveal())
		return err
	}
	raw, err := ekstoken.Answer(version, token)
	if err != nil {
		return err
	}
	_, err = c.out.Write(raw)
	return err
}

func (c *credentialCommand) token(ctx context.Context) (ekstoken.Token, error) {
	ctx, cancel := context.WithTimeout(ctx, loginTimeout)
	defer cancel()
	if !c.cache {
		return ekstoken.Make(ctx, c.request, c.now())
	}
	dir, err := ekstoken.DefaultCacheDir()
	if err != nil {
		return ekstoken.Token{}, err
	}
	key, err := ekstoken.KeyID(ctx, c.request)
	if err != nil {
		return ekstoken.Token{}, err
	}
	cache := ekstoken.Cache{Dir: dir, Environ: os.Environ(), KeyID: key}
	kept, ok, err := cache.Get(c.request, c.now())
	if err != nil {
		fmt.Fprintf(c.err, "Warning: %v\n", err)
	}
	if ok {
		return kept, nil
	}
	token, err := ekstoken.Make(ctx, c.request, c.now())
	if err != nil {
		return ekstoken.Token{}, err
	}
	if err := cache.Put(c.request, token); err != nil {
		fmt.Fprintf(c.err, "Warning: %v\n", err)
	}
	return token, nil
}
