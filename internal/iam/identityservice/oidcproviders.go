// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"slices"
	"time"

	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/iamfault"
	"muster.dev/muster/internal/iam/iam"
)

type createProviderIn struct {
	Url            string
	ClientIDList   []string
	ThumbprintList []string
	Tags           []tag
}

type createProviderOut struct {
	OpenIDConnectProviderArn string
	Tags                     *[]tag
}

type providerIn struct {
	OpenIDConnectProviderArn string
}

// providerOut has the URL as IAM does, without https://.
type providerOut struct {
	Url                          string
	CreateDate                   time.Time
	ClientIDList, ThumbprintList []string
	Tags                         *[]tag
}

type listProvidersOut struct {
	OpenIDConnectProviderList []providerEntry
}

type providerEntry struct{ Arn string }

type clientIDIn struct {
	OpenIDConnectProviderArn string
	ClientID                 string
}

type thumbprintsIn struct {
	OpenIDConnectProviderArn string
	ThumbprintList           []string
}

type tagProviderIn struct {
	OpenIDConnectProviderArn string
	Tags                     []tag
}

type untagProviderIn struct {
	OpenIDConnectProviderArn string
	TagKeys                  []string
}

type listProviderTagsIn struct {
	OpenIDConnectProviderArn string
	Marker                   *string
	MaxItems                 *int32
}

func (s *Service) registerProviders(front *awsfront.Front) {
	register(s, front, apiIAM, "CreateOpenIDConnectProvider", writes, func(c *call, in createProviderIn) (target, error) {
		url, err := iam.ProviderURL(in.Url)
		return tagged(iam.OIDCProvider{Account: c.account, URL: url}.ARN().String(), nil, in.Tags), err
	}, s.createProvider)
	register(s, front, apiIAM, "GetOpenIDConnectProvider", reads, func(c *call, in providerIn) (target, error) {
		return c.aboutProvider(in.OpenIDConnectProviderArn), nil
	}, func(c *call, in providerIn) (*providerOut, error) {
		p, err := c.provider(in.OpenIDConnectProviderArn)
		if err != nil {
			return nil, err
		}
		return &providerOut{
			Url: p.URL, CreateDate: p.Created, ClientIDList: p.ClientIDs,
			ThumbprintList: p.Thumbprints, Tags: shownTags(p.Tags),
		}, nil
	})
	register(s, front, apiIAM, "ListOpenIDConnectProviders", reads, func(c *call, _ none) (target, error) {
		return target{resource: iam.OIDCProvider{Account: c.account, URL: "*"}.ARN().String()}, nil
	},
		func(c *call, _ none) (*listProvidersOut, error) {
			out := &listProvidersOut{}
			for _, p := range c.state.Providers(c.account) {
				out.OpenIDConnectProviderList = append(out.OpenIDConnectProviderList, providerEntry{p.ARN().String()})
			}
			return out, nil
		})
	register(s, front, apiIAM, "UpdateOpenIDConnectProviderThumbprint", writes, func(c *call, in thumbprintsIn) (target, error) {
		return c.aboutProvider(in.OpenIDConnectProviderArn), nil
	}, func(c *call, in thumbprintsIn) (*none, error) {
		return s.changeProvider(c, in.OpenIDConnectProviderArn, func(p iam.OIDCProvider) iam.OIDCProvider { p.Thumbprints = in.ThumbprintList; return p })
	})
	aboutClient := func(c *call, in clientIDIn) (target, error) { return c.aboutProvider(in.OpenIDConnectProviderArn), nil }
	register(s, front, apiIAM, "AddClientIDToOpenIDConnectProvider", writes, aboutClient, func(c *call, in clientIDIn) (*none, error) {
		return s.changeProvider(c, in.OpenIDConnectProviderArn, func(p iam.OIDCProvider) iam.OIDCProvider { return p.WithClientID(in.ClientID) })
	})
	register(s, front, apiIAM, "RemoveClientIDFromOpenIDConnectProvider", writes, aboutClient, func(c *call, in clientIDIn) (*none, error) {
		return s.changeProvider(c, in.OpenIDConnectProviderArn, func(p iam.OIDCProvider) iam.OIDCProvider { return p.WithoutClientID(in.ClientID) })
	})
	register(s, front, apiIAM, "DeleteOpenIDConnectProvider", writes, func(c *call, in providerIn) (target, error) {
		return c.aboutProvider(in.OpenIDConnectProviderArn), nil
	}, s.deleteProvider)
	providers := tagging{(*call).aboutProvider, func(c *call, name string, _ bool) ([]iam.Tag, func([]iam.Tag) Entity, error) {
		p, err := c.provider(name)
		return p.Tags, func(t []iam.Tag) Entity { p.Tags = t; return p }, err
	}}
	registerTag(s, front, "TagOpenIDConnectProvider", providers, func(in tagProviderIn) tagIn { return tagIn{in.OpenIDConnectProviderArn, in.Tags} })
	registerUntag(s, front, "UntagOpenIDConnectProvider", providers, func(in untagProviderIn) untagIn { return untagIn{in.OpenIDConnectProviderArn, in.TagKeys} })
	registerListTags(s, front, "ListOpenIDConnectProviderTags", providers, func(in listProviderTagsIn) listTagsIn {
		return listTagsIn{in.OpenIDConnectProviderArn, in.Marker, in.MaxItems}
	})
}

// shownTags are tags in an answer that leaves out an empty list.
func shownTags(tags []iam.Tag) *[]tag {
	if len(tags) == 0 {
		return nil
	}
	list := tagsOf(tags)
	return &list
}

// provider finds a provider by its ARN.
func (c *call) provider(name string) (iam.OIDCProvider, error) {
	a, err := arn.Parse(name)
	if err != nil {
		return iam.OIDCProvider{}, iamfault.Errorf(iamfault.ValidationError, "ARN %.300s is not valid.", name)
	}
	p, ok := c.state.Provider(a.String())
	if !ok || p.Account != c.account {
		return iam.OIDCProvider{}, iamfault.Errorf(iamfault.NoSuchEntity, "OpenIDConnect Provider not found for arn %.300s", name)
	}
	return p, nil
}

// aboutProvider is a provider, with its tags if it is there.
func (c *call) aboutProvider(name string) target {
	p, err := c.provider(name)
	if err != nil {
		return tagged(name, nil, nil)
	}
	return tagged(p.ARN().String(), p.Tags, nil)
}

func checkProvider(p iam.OIDCProvider) error {
	if len(p.Thumbprints) > iam.MaxThumbprints {
		return iamfault.Errorf(iamfault.InvalidInput, "Thumbprint list must contain fewer than %d entries: there are %d.", iam.MaxThumbprints+1, len(p.Thumbprints))
	}
	return firstError(iam.CheckClientIDs(p.ClientIDs), iam.CheckThumbprints(p.Thumbprints), iam.CheckTags(p.Tags))
}

// createProvider keeps a provider without asking its issuer for anything. IAM would fetch a missing thumbprint; here
// the list stays empty.
func (s *Service) createProvider(c *call, in createProviderIn) (*createProviderOut, error) {
	url, err := iam.ProviderURL(in.Url)
	if err != nil {
		return nil, err
	}
	p := iam.OIDCProvider{Account: c.account, URL: url, Thumbprints: slices.Clone(in.ThumbprintList), Created: moment(c.now), Tags: tagsFrom(in.Tags)}
	for _, id := range in.ClientIDList {
		p = p.WithClientID(id)
	}
	if err := checkProvider(p); err != nil {
		return nil, err
	}
	if c.state.taken(name(p)) {
		return nil, iamfault.Errorf(iamfault.EntityAlreadyExists, "Provider with url https://%s already exists.", p.URL)
	}
	return &createProviderOut{p.ARN().String(), shownTags(p.Tags)}, s.config.Store.Create(c.ctx, p)
}

func (s *Service) changeProvider(c *call, name string, change func(iam.OIDCProvider) iam.OIDCProvider) (*none, error) {
	p, err := c.provider(name)
	if err != nil {
		return nil, err
	}
	p = change(p)
	if err := checkProvider(p); err != nil {
		return nil, err
	}
	return nil, s.config.Store.Update(c.ctx, c.state, p)
}

// deleteProvider is not an error for one that is not there, as the API reference has it. Roles may go on naming the
// provider.
func (s *Service) deleteProvider(c *call, in providerIn) (*none, error) {
	a, err := arn.Parse(in.OpenIDConnectProviderArn)
	if err != nil {
		return nil, iamfault.Errorf(iamfault.ValidationError, "ARN %.300s is not valid.", in.OpenIDConnectProviderArn)
	}
	p, ok := c.state.Provider(a.String())
	if !ok || p.Account != c.account {
		return nil, nil
	}
	return nil, s.config.Store.Delete(c.ctx, c.state, p)
}
