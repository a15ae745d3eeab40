// SPDX-License-Identifier: Apache-2.0

import { render, screen } from '@testing-library/react';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import csr from '../../internal/explain/explainapi/testdata/csr.json';
import explainedNode from '../../internal/explain/explainapi/testdata/node.json';
import nodes from '../../internal/explain/explainapi/testdata/nodes.json';

const request = vi.hoisted(() => vi.fn());
const registered = vi.hoisted(() => ({ section: vi.fn(), route: vi.fn(), entry: vi.fn() }));

vi.mock('@kinvolk/headlamp-plugin/lib', () => ({
  ApiProxy: { request },
  registerDetailsViewSection: registered.section,
  registerRoute: registered.route,
  registerSidebarEntry: registered.entry,
}));

// Plain tables in place of Headlamp's, which need its whole page around them.
vi.mock('@kinvolk/headlamp-plugin/lib/CommonComponents', () => ({
  SectionBox: (props: { title: string; children: React.ReactNode }) => (
    <section aria-label={props.title}>{props.children}</section>
  ),
  NameValueTable: (props: { rows: { name: string; value: string }[] }) => (
    <dl>
      {props.rows.map(row => (
        <div key={row.name}>
          {row.name}: {row.value}
        </div>
      ))}
    </dl>
  ),
  SimpleTable: (props: { columns: { label: string; getter: (row: any) => any }[]; data: any[] }) => (
    <table>
      <tbody>
        {props.data.map((row, at) => (
          <tr key={at}>
            {props.columns.map(column => (
              <td key={column.label}>{column.getter(row)}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  ),
}));

import { ClusterPage } from './Explained';
import { byTrouble, pathOf, whyNot } from './explanation';
import { Section } from './index';

/** What the real API answered: the golden files of its own tests. */
const recorded: Record<string, any> = { node: explainedNode, csr, nodes };

const node = (name: string): any => ({ kind: 'Node', metadata: { name }, cluster: 'home' });

beforeEach(() => request.mockReset());

describe('the section of a page of details', () => {
  it('shows the cause of a node with its evidence, fix and steps', async () => {
    request.mockResolvedValue(structuredClone(recorded.node));
    const { container } = render(<Section resource={node('ip-10-0-1-7.internal')} />);
    expect(await screen.findByText(/M-IAM-01: the role is in no access entry/)).toBeTruthy();
    expect(screen.getByText(/aws eks create-access-entry --cluster-name home/)).toBeTruthy();
    expect(container.textContent).toContain('refused by rule no-entry');
    expect(container.textContent).toContain('APIReachedfailed');
    expect(container.textContent).not.toContain('ClientCSRCreated');
    expect(request).toHaveBeenCalledWith(
      '/apis/explain.muster.dev/v1alpha1/nodeexplanations/ip-10-0-1-7.internal',
      { cluster: 'home' }
    );
  });

  it('shows a certificate signing request, and nothing of other kinds', async () => {
    request.mockResolvedValue(recorded.csr);
    render(
      <Section
        resource={{ kind: 'CertificateSigningRequest', metadata: { name: 'csr-8x2vq' } } as any}
      />
    );
    expect(await screen.findByText(/a certificate signing request was denied/)).toBeTruthy();
    const { container } = render(
      <Section resource={{ kind: 'Pod', metadata: { name: 'p' } } as any} />
    );
    expect(container.innerHTML).toBe('');
    expect(request).toHaveBeenCalledTimes(1);
  });

  it('shows what a machine writes as text', async () => {
    const hostile = structuredClone(recorded.node);
    hostile.report.causes[0].evidence[0].text = '<img src=x onerror="window.hit = 1"><b>bold</b>';
    hostile.report.causes[0].fix = '<script>window.hit = 2</script>';
    request.mockResolvedValue(hostile);
    const { container } = render(<Section resource={node('a')} />);
    expect(await screen.findByText(/<img src=x/)).toBeTruthy();
    expect(container.querySelector('img, script, b')).toBeNull();
    expect((window as any).hit).toBeUndefined();
  });

  it('says who may not, and where there is no add-on', async () => {
    request.mockRejectedValueOnce(Object.assign(new Error('Forbidden'), { status: 403 }));
    render(<Section resource={node('a')} />);
    expect(await screen.findByText(/muster:explain-reader/)).toBeTruthy();
    request.mockRejectedValueOnce(Object.assign(new Error('Not Found'), { status: 404 }));
    render(<Section resource={node('b')} />);
    expect(await screen.findByText(/no add-on muster-explain/)).toBeTruthy();
  });
});

describe('the page of a cluster', () => {
  it('shows what is in trouble first', async () => {
    request
      .mockRejectedValueOnce(Object.assign(new Error('it hangs'), { status: 503 }))
      .mockResolvedValueOnce(recorded.nodes)
      .mockRejectedValueOnce(Object.assign(new Error('it hangs'), { status: 503 }));
    render(<ClusterPage />);
    const rows = await screen.findAllByRole('row');
    expect(request.mock.calls[1]).toEqual([pathOf('nodeexplanations'), {}]);
    expect(rows.map(row => row.firstChild?.textContent)).toEqual([
      'ip-10-0-1-7.internal',
      'i-0000000000000000b',
      'rack-7',
    ]);
    expect(screen.getAllByText(/Nothing can be explained now: it hangs/)).toHaveLength(2);
  });

  it('is registered, as is the section', () => {
    expect(registered.section).toHaveBeenCalledWith(Section);
    expect(registered.entry.mock.calls[0][0]).toMatchObject({ url: '/muster-explain' });
    expect(registered.route.mock.calls[0][0]).toMatchObject({ path: '/muster-explain' });
  });
});

describe('paths and words', () => {
  it('keeps names inside of paths', () => {
    expect(pathOf('nodeexplanations', 'a/../secrets?x')).toBe(
      '/apis/explain.muster.dev/v1alpha1/nodeexplanations/a%2F..%2Fsecrets%3Fx'
    );
    expect(whyNot('x')).toContain('could not be read: x');
    expect(byTrouble([])).toEqual([]);
  });
});
