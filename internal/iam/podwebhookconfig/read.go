// SPDX-License-Identifier: Apache-2.0

package podwebhookconfig

import (
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"muster.dev/muster/internal/iam/iam"
	"muster.dev/muster/internal/platform/strictyaml"
)

const (
	defaultGrace = "500ms"
	maxGrace     = 5 * time.Second // the API server waits for ten
	minSeconds   = 600             // the API server gives no shorter token
	maxSeconds   = 86400
)

// Read reads the file and fills in defaults. Everything that is wrong with it comes back as one error, a line each.
func Read(data []byte) (Configuration, error) {
	var c Configuration
	err := strictyaml.One(data, "file", "apiVersion, kind and server", &c, func() field.ErrorList {
		c.setDefaults()
		return c.validate()
	})
	if err != nil {
		return Configuration{}, err
	}
	return c, nil
}

func (c *Configuration) setDefaults() {
	if c.GracePeriod == "" {
		c.GracePeriod = defaultGrace
	}
	if c.ComposeRole != nil && c.ComposeRole.Partition == "" {
		c.ComposeRole.Partition = iam.Partition
	}
}

func (c *Configuration) validate() field.ErrorList {
	var errs field.ErrorList
	bad := func(path *field.Path, value any, rule string) { errs = append(errs, field.Invalid(path, value, rule)) }
	if c.APIVersion != APIVersion || c.Kind != Kind {
		bad(field.NewPath("kind"), c.APIVersion+" "+c.Kind, "must be "+APIVersion+" "+Kind)
	}
	errs = append(errs, c.validateServer()...)
	errs = append(errs, c.validateTokens()...)
	if c.ComposeRole != nil && iam.CheckAccountID(c.ComposeRole.AccountID) != nil {
		bad(field.NewPath("composeRole", "accountID"), c.ComposeRole.AccountID, "must be twelve digits")
	}
	if c.ConfigMapNamespace != "" && len(validation.IsDNS1123Label(c.ConfigMapNamespace)) > 0 {
		bad(field.NewPath("configMapNamespace"), c.ConfigMapNamespace, "must be the name of a namespace")
	}
	if d, err := time.ParseDuration(c.GracePeriod); c.GracePeriod != None && (err != nil || d <= 0 || d > maxGrace) {
		bad(field.NewPath("gracePeriod"), c.GracePeriod, "must be a duration up to 5s, such as 500ms, or none")
	}
	if u, err := url.Parse(c.Account.EndpointURL); c.Account.EndpointURL != "" && (err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "") {
		bad(field.NewPath("account", "endpointURL"), c.Account.EndpointURL, "must be a URL such as https://172.31.0.3")
	}
	return errs
}

// validateServer checks addresses and files.
func (c *Configuration) validateServer() field.ErrorList {
	var errs field.ErrorList
	bad := func(path *field.Path, value any, rule string) { errs = append(errs, field.Invalid(path, value, rule)) }
	server := field.NewPath("server")
	addresses := map[string]string{"bindAddress": c.Server.BindAddress, "healthAddress": c.Server.Health}
	if c.Server.Metrics != "" {
		addresses["metricsAddress"] = c.Server.Metrics
	}
	for name, address := range addresses {
		if _, err := netip.ParseAddrPort(address); err != nil {
			bad(server.Child(name), address, "must be an IP address and a port, such as 0.0.0.0:8443")
		}
	}
	if c.Server.Certificate == "" || c.Server.Key == "" {
		errs = append(errs, field.Required(server.Child("certificate"), "the file of the serving certificate, and that of its key in server.key"))
	}
	errs = append(errs, c.Server.validateAuthority(server)...)
	for path, file := range map[string]string{
		"server.certificate": c.Server.Certificate, "server.key": c.Server.Key, "server.clientCA": c.Server.ClientCA,
		"server.metricsClientCA":    c.Server.MetricsClientCA,
		"containerCredentials.file": c.ContainerCredentials.File, "account.trustFile": c.Account.TrustFile,
	} {
		if file != "" && !filepath.IsAbs(file) {
			bad(field.NewPath(path), file, "must be an absolute path")
		}
	}
	if w := c.ContainerCredentials.Writer; w != "" && (c.ContainerCredentials.File == "" || c.Server.ClientCA == "") {
		bad(field.NewPath("containerCredentials", "writer"), w, "needs containerCredentials.file, which it replaces, and server.clientCA, by which it is known")
	}
	return errs
}

func (c *Configuration) validateTokens() field.ErrorList {
	var errs field.ErrorList
	bad := func(path *field.Path, value any, rule string) { errs = append(errs, field.Invalid(path, value, rule)) }
	if s := c.WebIdentity.ExpirationSeconds; s != 0 && (s < minSeconds || s > maxSeconds) {
		bad(field.NewPath("webIdentity", "expirationSeconds"), s, "must be from 600 to 86400")
	}
	for path, mount := range map[string]string{"webIdentity": c.WebIdentity.MountPath, "containerCredentials": c.ContainerCredentials.MountPath} {
		if mount != "" && !strings.HasPrefix(mount, "/") {
			bad(field.NewPath(path, "mountPath"), mount, "must begin with a slash")
		}
	}
	if c.AnnotationDomain != "" && len(validation.IsDNS1123Subdomain(c.AnnotationDomain)) > 0 {
		bad(field.NewPath("annotationDomain"), c.AnnotationDomain, "must be a DNS name such as eks.amazonaws.com")
	}
	return errs
}

func (s Server) validateAuthority(path *field.Path) field.ErrorList {
	if s.Authority == nil {
		return nil
	}
	var errs field.ErrorList
	if s.Certificate != s.Key {
		errs = append(errs, field.Invalid(path.Child("key"), s.Key, "must be server.certificate: the webhook writes both into one file"))
	}
	for name, value := range map[string]string{"namespace": s.Authority.Namespace, "service": s.Authority.Service} {
		if len(validation.IsDNS1123Label(value)) > 0 {
			errs = append(errs, field.Invalid(path.Child("authority", name), value, "must be the name of a "+name))
		}
	}
	for name, value := range map[string]string{"secret": s.Authority.Secret, "webhookConfiguration": s.Authority.WebhookConfiguration} {
		if len(validation.IsDNS1123Subdomain(value)) > 0 {
			errs = append(errs, field.Invalid(path.Child("authority", name), value, "must be the name of an object"))
		}
	}
	return errs
}
