import time,numpy as np
from pufferfish.noise import noise_in_bulk
for n in (100000,):
    t=time.time(); d=noise_in_bulk(np.zeros((n,2),dtype=np.int64),3.3,lipschitz=2); t1=time.time(); v=d(); print(n,t1-t,time.time()-t1,v.shape,np.abs(v).mean(), v.var(), np.corrcoef(v.T)[0,1])
