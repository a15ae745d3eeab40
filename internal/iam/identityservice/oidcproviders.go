// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"slices"

	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/iam/awsquery"
	"muster.dev/muster/internal/iam/iam"
)

type createProviderIn struct {
	Url            string `query:",required"`
	ClientIDList   []string
	ThumbprintList []string
	Tags           []tag
}

type createProviderOut struct {
	OpenIDConnectProviderArn string
	Tags                     *awsquery.List[tag] `xml:",omitempty"`
}

type providerIn struct {
	OpenIDConnectProviderArn string `query:",required"`
}

// providerOut has the URL as IAM does, without https://.
type providerOut struct {
	Url                          string
	CreateDate                   awsquery.Time
	ClientIDList, ThumbprintList awsquery.List[string]
	Tags                         *awsquery.List[tag] `xml:",omitempty"`
}

type listProvidersOut struct {
	OpenIDConnectProviderList awsquery.List[providerEntry]
}

type providerEntry struct{ Arn string }

type clientIDIn struct {
	OpenIDConnectProviderArn string `query:",required"`
	ClientID                 string `query:",required"`
}

type thumbprintsIn struct {
	OpenIDConnectProviderArn string   `query:",required"`
	ThumbprintList           []string `query:",required"`
}

type tagProviderIn struct {
	OpenIDConnectProviderArn string `query:",required"`
	Tags                     []tag  `query:",present"`
}

type untagProviderIn struct {
	OpenIDConnectProviderArn string   `query:",required"`
	TagKeys                  []string `query:",present"`
}

type listProviderTagsIn struct {
	OpenIDConnectProviderArn string `query:",required"`
	Marker                   *string
	MaxItems                 *int32
}

func (s *Service) registerProviders(server *awsquery.Server) {
	api := awsquery.IAM()
	register(s, server, api, "CreateOpenIDConnectProvider", writes, func(c *call, in createProviderIn) (target, error) {
		url, err := iam.ProviderURL(in.Url)
		return tagged(iam.OIDCProvider{Account: c.account, URL: url}.ARN().String(), nil, in.Tags), err
	}, s.createProvider)
	register(s, server, api, "GetOpenIDConnectProvider", reads, func(c *call, in providerIn) (target, error) {
		return c.aboutProvider(in.OpenIDConnectProviderArn), nil
	}, func(c *call, in providerIn) (*providerOut, error) {
		p, err := c.provider(in.OpenIDConnectProviderArn)
		if err != nil {
			return nil, err
		}
		return &providerOut{
			Url: p.URL, CreateDate: awsquery.Time{Time: p.Created}, ClientIDList: awsquery.ListOf(p.ClientIDs),
			ThumbprintList: awsquery.ListOf(p.Thumbprints), Tags: shownTags(p.Tags),
		}, nil
	})
	register(s, server, api, "ListOpenIDConnectProviders", reads, func(c *call, _ none) (target, error) {
		return target{resource: iam.OIDCProvider{Account: c.account, URL: "*"}.ARN().String()}, nil
	},
		func(c *call, _ none) (*listProvidersOut, error) {
			out := &listProvidersOut{}
			for _, p := range c.state.Providers(c.account) {
				out.OpenIDConnectProviderList.Members = append(out.OpenIDConnectProviderList.Members, providerEntry{p.ARN().String()})
			}
			return out, nil
		})
	register(s, server, api, "UpdateOpenIDConnectProviderThumbprint", writes, func(c *call, in thumbprintsIn) (target, error) {
		return c.aboutProvider(in.OpenIDConnectProviderArn), nil
	}, func(c *call, in thumbprintsIn) (*none, error) {
		return s.changeProvider(c, in.OpenIDConnectProviderArn, func(p iam.OIDCProvider) iam.OIDCProvider { p.Thumbprints = in.ThumbprintList; return p })
	})
	aboutClient := func(c *call, in clientIDIn) (target, error) { return c.aboutProvider(in.OpenIDConnectProviderArn), nil }
	register(s, server, api, "AddClientIDToOpenIDConnectProvider", writes, aboutClient, func(c *call, in clientIDIn) (*none, error) {
		return s.changeProvider(c, in.OpenIDConnectProviderArn, func(p iam.OIDCProvider) iam.OIDCProvider { return p.WithClientID(in.ClientID) })
	})
	register(s, server, api, "RemoveClientIDFromOpenIDConnectProvider", writes, aboutClient, func(c *call, in clientIDIn) (*none, error) {
		return s.changeProvider(c, in.OpenIDConnectProviderArn, func(p iam.OIDCProvider) iam.OIDCProvider { return p.WithoutClientID(in.ClientID) })
	})
	register(s, server, api, "DeleteOpenIDConnectProvider", writes, func(c *call, in providerIn) (target, error) {
		return c.aboutProvider(in.OpenIDConnectProviderArn), nil
	}, s.deleteProvider)
	providers := tagging{(*call).aboutProvider, func(c *call, name string, _ bool) ([]iam.Tag, func([]iam.Tag) Entity, error) {
		p, err := c.provider(name)
		return p.Tags, func(t []iam.Tag) Entity { p.Tags = t; return p }, err
	}}
	registerTag(s, server, "TagOpenIDConnectProvider", providers, func(in tagProviderIn) tagIn { return tagIn{in.OpenIDConnectProviderArn, in.Tags} })
	registerUntag(s, server, "UntagOpenIDConnectProvider", providers, func(in untagProviderIn) untagIn { return untagIn{in.OpenIDConnectProviderArn, in.TagKeys} })
	registerListTags(s, server, "ListOpenIDConnectProviderTags", providers, func(in listProviderTagsIn) listTagsIn {
		return listTagsIn{in.OpenIDConnectProviderArn, in.Marker, in.MaxItems}
	})
}

// shownTags are tags in an answer that leaves out an empty list.
func shownTags(tags []iam.Tag) *awsquery.List[tag] {
	if len(tags) == 0 {
		return nil
	}
	list := awsquery.ListOf(tagsOf(tags))
	return &list
}

// provider finds a provider by its ARN.
func (c *call) provider(name string) (iam.OIDCProvider, error) {
	a, err := arn.Parse(name)
	if err != nil {
		return iam.OIDCProvider{}, awsquery.Errorf(awsquery.ValidationError, "ARN %.300s is not valid.", name)
	}
	p, ok := c.state.Provider(a.String())
	if !ok || p.Account != c.account {
		return iam.OIDCProvider{}, awsquery.Errorf(awsquery.NoSuchEntity, "OpenIDConnect Provider not found for arn %.300s", name)
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
		return awsquery.Errorf(awsquery.InvalidInput, "Thumbprint list must contain fewer than %d entries: there are %d.", iam.MaxThumbprints+1, len(p.Thumbprints))
	}
	return firstError(iam.CheckClientIDs(p.ClientIDs), iam.CheckThumbprints(p.Thumbprints), iam.CheckTags(p.Tags))
}

// createProvider keeps a provider without asking its issuer for anything. IAM would fetch a missing thumbprint; here the list stays empty.
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
		return nil, awsquery.Errorf(awsquery.EntityAlreadyExists, "Provider with url https://%s already exists.", p.URL)
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

// deleteProvider is not an error for one that is not there, as the API reference has it. Roles may go on naming the provider.
func (s *Service) deleteProvider(c *call, in providerIn) (*none, error) {
	a, err := arn.Parse(in.OpenIDConnectProviderArn)
	if err != nil {
		return nil, awsquery.Errorf(awsquery.ValidationError, "ARN %.300s is not valid.", in.OpenIDConnectProviderArn)
	}
	p, ok := c.state.Provider(a.String())
	if !ok || p.Account != c.account {
		return nil, nil
	}
	return nil, s.config.Store.Delete(c.ctx, c.state, p)
}
