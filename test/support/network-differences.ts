/**
 * Documents of the recordings, by their names, on which sealift and nmstatectl 2.2.62 differ, with the
 * reason. A document that is only one of many random ones is listed by what it has.
 */
export const NETWORK_DIFFERENCES: Readonly<Record<string, string>> = {
  // nmstate makes profiles, and sealift refuses the document.
  'nmstate/nmstate:rust/src/lib/unit_tests/statistic.rs#3':
    'the address of a group cannot belong to an interface (IEEE 802)',
  'openshift/installer (fork bfournie/installer):pkg/asset/agent/agentconfig/agenthosts_test.go#7':
    'two interfaces have one name: nmstate drops the first in silence',
  'openshift/installer (fork bfournie/installer):cmd/openshift-install/testdata/agent/agentconfigtemplate/agent-config-template.txt#n0':
    'no interface can have the address of the template, which is zero',
  'openshift/installer (fork bfournie/installer):cmd/openshift-install/testdata/imagebased/configtemplate/config-template.txt#n0':
    'no interface can have the address of the template, which is zero',
  'openshift/installer (fork bfournie/installer):pkg/asset/imagebased/configimage/imagebased_config_test.go#0.0':
    'no interface can have the address of the template, which is zero',
  'openshift/installer (fork bfournie/installer):cmd/openshift-install/testdata/agent/pxe/configurations/sno_s390x.txt#n0':
    'the kernel refuses a route over an address of the host itself',
  'v4 broadcast': 'no host has the address of everybody',
  'mac short': 'NetworkManager does not read it: the interface keeps its own address',
  'dup key': 'a key that is written twice: nmstate drops the first in silence',
  'route other family': 'NetworkManager drops a gateway of another family',
  'dns search space': 'NetworkManager refuses a domain with a space',
  'dns search semicolon': 'a semicolon separates two domains in a keyfile',
  'bond lp': 'NetworkManager drops lp_interval 0',
  'vlan self': 'an interface cannot be its own parent',
  'mac id nomac': 'an interface that is found by its address needs one',
  // sealift makes profiles, and nmstate refuses the document.
  'bom': 'a byte order mark is not content',
  // Both make profiles, which differ without an effect.
  'mapped v6': 'two spellings of one address',
  'random f50': 'nmstate leaves out the empty section of one port of a bridge, and not of others',
  'mac dashes': 'two spellings of one address',
  'mac no sep': 'nmstate copies a spelling that NetworkManager does not read',
  'client id ;': 'nmstate does not escape a backslash, which has an escape in a keyfile',
};
