"""What goes from a structure to leave its parent: solvents and the partners that make salts.

SMILES, SMARTS and atomic numbers, data only; how a parent is found with it is in `molecules`.
"""

# Everything that is not a metal, metalloids included; s-block metals are counter-ions even when drawn with a bond.
NON_METALS = frozenset([0, 1, 2, 5, 6, 7, 8, 9, 10, 14, 15, 16, 17, 18, 32, 33, 34, 35, 36, 51, 52, 53, 54, 85, 86])
S_BLOCK = frozenset([3, 4, 11, 12, 19, 20, 37, 38, 55, 56, 87, 88])

# What goes, level by level, as long as something else stays. Stereochemistry, isotopes and charge do not count here.
SOLVENTS = (
    "CO CCO CCCO CC(C)O CCCCO CC(C)CO CC(C)(C)O OCCO CC(O)CO OCC(O)CO CC(C)=O CCC(C)=O CC#N CN(C)C=O CC(=O)N(C)C "
    "CS(C)=O C1CCOC1 C1COCCO1 CCOCC COC(C)(C)C CCOC(C)=O CC(=O)OC(C)C ClCCl ClC(Cl)Cl Cc1ccccc1 c1ccccc1 CCCCCC "
    "CCCCCCC C1CCCCC1 c1ccncc1 CN1CCCC1=O NC=O O=C=O"
)
PLAIN_ACIDS = (
    "C(=O)O CC(=O)O CCC(=O)O CCCC(=O)O OC(=O)C(F)(F)F OC(=O)O OC(=O)C(=O)O OC(=O)CC(=O)O OC(=O)CCC(=O)O "
    "OC(=O)CCCCC(=O)O OC(=O)C=CC(=O)O CC(O)C(=O)O OCC(=O)O OC(=O)CC(O)C(=O)O OC(=O)C(O)C(O)C(=O)O "
    "OC(=O)CC(O)(C(=O)O)CC(=O)O OCC(O)C(O)C(O)C(O)C(=O)O OC(=O)C(O)C(O)C(O)C(O)C(=O)O OCC(O)C(O)C(O)C(O)C(O)C(=O)O "
    "CCCCCCCCCCCC(=O)O CCCCCCCCCCCCCCCC(=O)O CCCCCCCCCCCCCCCCCC(=O)O CS(=O)(=O)O CCS(=O)(=O)O OCCS(=O)(=O)O "
    "OS(=O)(=O)CCS(=O)(=O)O OS(=O)(=O)C(F)(F)F OS(=O)(=O)c1ccccc1 Cc1ccc(cc1)S(=O)(=O)O Clc1ccc(cc1)S(=O)(=O)O "
    "OS(=O)(=O)c1ccc2ccccc2c1 OS(=O)(=O)c1cccc2ccccc12 OS(=O)(=O)c1cccc2c1cccc2S(=O)(=O)O CC1(C)C2CCC1(CS(=O)(=O)O)"
    "C(=O)C2 COS(=O)(=O)O CCOS(=O)(=O)O CCCCCCCCCCCCOS(=O)(=O)O C#N SC#N OC#N OC(=O)c1cc2ccccc2c(Cc2c3ccccc3cc(C(=O)O)"
    "c2O)c1O"
)
ACIDS_ALSO_DRUGS = (
    "OC(=O)c1ccccc1 OC(=O)c1ccccc1O OC(=O)c1ccccc1C(=O)O OC(=O)c1ccc(O)cc1 OC(=O)c1ccc2ccccc2c1O OC(=O)C(O)c1ccccc1 "
    "OC(=O)C=Cc1ccccc1 OC(=O)c1cccnc1 O=S1(=O)NC(=O)c2ccccc12 NC(CC(=O)O)C(=O)O NC(CCC(=O)O)C(=O)O OC(=O)C1CCC(=O)N1 "
    "OC(=O)CNC(=O)c1ccccc1 CC1=CC(=O)NS(=O)(=O)O1 CC(=O)NCC(=O)O OC(=O)c1cc(O)c(O)c(O)c1 OCC(O)C1OC(=O)C(O)=C1O"
)
BASES_ALSO_DRUGS = (
    "NCCCCC(N)C(=O)O NC(CCCNC(N)=N)C(=O)O NC(Cc1c[nH]cn1)C(=O)O NCC(=O)O CNCC(O)C(O)C(O)C(O)CO NC(CO)(CO)CO NCCO "
    "OCCNCCO OCCN(CCO)CCO C[N+](C)(C)CCO C[N+](C)(C)CC(=O)[O-] CN(C)CCO CCN(CC)CCO OCCN1CCCC1 OCCN1CCOCC1 NCCN CN CCN "
    "CNC CCNCC CN(C)C CCN(CC)CC CC(C)(C)N CC(C)N C1CNCCN1 C1CCNCC1 C1CCNC1 C1COCCN1 C1CCCCC1NC1CCCCC1 "
    "c1ccc(cc1)CNCCNCc1ccccc1 c1ccccc1CNCCc1ccccc1 NCc1ccccc1 C[N+](C)(C)C CC[N+](CC)(CC)CC CCCC[N+](CCCC)(CCCC)CCCC "
    "NC(N)=N NC(N)=O"
)
ACID_GROUPS = (
    "[CX3](=O)[OX2H1,OX1-]", "[S,P,B]~[OX2H1,OX1-]", "[OX2H1,OX1-]c", "[#7-]", "[nH]",
    "[NX3;H1,H2]([C,S]=O)[C,S]=O", "[NX3;H1,H2]S(=O)=O", "[OX2H1][NX3]C=O", "[OX2H1]C=C",
)  # fmt: skip

KNOWN_PARTNERS = (SOLVENTS, PLAIN_ACIDS, ACIDS_ALSO_DRUGS, BASES_ALSO_DRUGS)
"""In the order in which they go."""
